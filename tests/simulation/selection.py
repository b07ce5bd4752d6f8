"""Which objects a list or watch shows: those of a namespace, and field selectors."""

from dataclasses import dataclass

from simulation.patches import UnmodelledError


def _value(item, path: str) -> str:
    for part in path.split("."):
        item = item.get(part, "") if isinstance(item, dict) else ""
    return item if isinstance(item, str) else ""


@dataclass(frozen=True)
class Selection:
    namespace: str = ""
    terms: tuple[tuple[str, bool, str], ...] = ()

    @classmethod
    def of(cls, place, query) -> "Selection":
        if query.get("labelSelector"):
            raise UnmodelledError("labelSelector")
        terms = [(("metadata.name", True, place.name))] if place.name else []
        for term in filter(None, query.get("fieldSelector", "").split(",")):
            path, operator, value = term.partition("!=") if "!=" in term else term.replace("==", "=").partition("=")
            terms.append((path, operator != "!=", value))
        return cls(place.namespace, tuple(terms))

    def shows(self, item) -> bool:
        """False for no object, too."""
        if item is None or (self.namespace and item["metadata"].get("namespace") != self.namespace):
            return False
        return all((_value(item, path) == value) is wanted for path, wanted, value in self.terms)

    def event(self, change) -> str | None:
        """What a watcher sees of a change: an object that leaves the selection is deleted for it."""
        before, after = self.shows(change.old), self.shows(change.new)
        if after:
            return "MODIFIED" if before else "ADDED"
        return "DELETED" if before else None
