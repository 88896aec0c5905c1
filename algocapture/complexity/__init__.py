"""What inference and tasks cost: FLOPs, schemes with counted operations, the paper's bounds.

Nothing is re-exported, so that `complexity.bounds` starts without torch.
"""
