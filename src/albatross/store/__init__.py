"""What is kept on disk: one identity of a result, one atomic writer, one reader."""
