"""The one error of this room: an API object that cannot be read, with the place inside it."""

from __future__ import annotations


class ObjectError(ValueError):
    """An object that cannot be read.

    `path` is the place inside the object (`spec.containers[0].resources.requests.cpu`, empty for the object as
    a whole), `message` one sentence that names the object. Builders raise it without the object's name; `read`
    adds it.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message

    def of(self, subject: str) -> ObjectError:
        """The same error, saying which object (`Pod web/api-7d9`) it is about."""
        place = f"{self.path}: " if self.path else ""
        return ObjectError(self.path, f"{subject}: {place}{self.message}")
