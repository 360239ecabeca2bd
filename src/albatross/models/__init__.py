"""How rewards are modelled: what policies learn from plays and rewards."""
