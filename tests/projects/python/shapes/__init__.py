from shapes.base import Shape

__all__ = ["Shape"]
