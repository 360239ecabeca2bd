"""Results on disk: one identity, one atomic writer, one reader."""
