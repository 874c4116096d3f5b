"""The rows of the torch face, a file for each kind of object."""
