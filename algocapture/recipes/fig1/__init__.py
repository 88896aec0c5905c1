"""The panels of the paper's Figure 1."""
