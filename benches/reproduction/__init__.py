"""The study of docs/reproduction.md: what is run, its results and its pages."""
