"""Python files that return experiments: `experiment()` in each. Running one is running Python."""
