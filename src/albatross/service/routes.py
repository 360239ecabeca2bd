"""All routes but the hot ones. Importing a module registers the routes that it has."""

from __future__ import annotations

from albatross.service import personalizer
from albatross.service.dashboard import page
from albatross.service.endpoints import ENDPOINTS

__all__ = ["ENDPOINTS", "page", "personalizer"]
