"""The inside of a `Flock`: how it plays, what it keeps of its users, and the population that they teach."""
