"""The tasks with a name: one class in one file each, and a table in papers.toml.

docs/api/command-line.md defines a task; a user's own tasks have the same interface.
"""
