"""Models of rewards, which policies fit to plays and rewards."""
