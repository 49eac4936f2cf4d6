from .processes import members

__all__ = ["members"]
