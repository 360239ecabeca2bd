"""`python -m albatross`, where the command is not on the path."""

from __future__ import annotations

from albatross.cli import main

if __name__ == "__main__":
    main()
