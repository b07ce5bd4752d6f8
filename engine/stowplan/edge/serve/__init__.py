"""What a running scheduler shows over HTTP: health, metrics, and pages about itself. It only ever answers questions."""

from stowplan.edge.serve.health import Check, Health
from stowplan.edge.serve.pages import Asked, Page, Reply, as_json
from stowplan.edge.serve.server import Server

__all__ = ["Asked", "Check", "Health", "Page", "Reply", "Server", "as_json"]
