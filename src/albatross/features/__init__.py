"""Features from records: declare them once, and dicts and tables become the contexts that a policy sees."""

from __future__ import annotations

from albatross.features.kinds import Category, Number, Vector
from albatross.features.proposal import Proposal, propose
from albatross.features.schema import Features, given_dim

__all__ = ["Category", "Features", "Number", "Proposal", "Vector", "given_dim", "propose"]
