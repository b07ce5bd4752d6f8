"""What the stand-ins for kubelet and for volume provisioning share: watches, a few workers, and no failure unseen."""

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor

from controlplane.client import ApiError, Client
from controlplane.watching import RETRY, Watching

WORKERS = 8
PASSING = {404, 409, 429, 500, 503, 504}
"""statuses of a busy API server, or of objects that changed or went meanwhile"""


class StandIn:
    """Context manager; leaving it stops the threads and raises what went wrong in them."""

    def __init__(self, client: Client, workers: int = WORKERS):
        self.client = client
        self.watches: list[Watching] = []
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix=type(self).__name__)
        self.stopped = threading.Event()
        self.failures: list[BaseException] = []

    def follow(self, resource: str, handle, **query) -> None:
        self.watches.append(Watching(self.client, resource, handle, **query))

    def start(self):
        for each in self.watches:
            each.start()
        return self

    def stop(self) -> None:
        self.stopped.set()
        for each in self.watches:
            each.stop()
        self.pool.shutdown(wait=True, cancel_futures=True)
        if self.failures:
            raise ExceptionGroup(f"{type(self).__name__} failed", self.failures)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def submit(self, function, *arguments, delay: float = 0.0) -> None:
        """Has a worker call the function after `delay` seconds, again and again until the API server answers."""
        if self.stopped.is_set():
            return
        if delay > 0:
            timer = threading.Timer(delay, self.submit, (function, *arguments))
            timer.daemon = True
            timer.start()
            return
        try:
            self.pool.submit(self.attempt, function, *arguments)
        except RuntimeError:  # the pool was shut down between the two
            assert self.stopped.is_set()

    def attempt(self, function, *arguments) -> None:
        while not self.stopped.is_set():
            try:
                return function(*arguments)
            except ApiError as error:
                if error.status in {404, 409}:
                    return None  # the object is gone or another one: its next event tells
                if error.status not in PASSING:
                    self.failures.append(error)
                    return None
            except (OSError, http.client.HTTPException):
                pass  # the API server is away
            except Exception as error:  # noqa: BLE001 -- raised by stop()
                self.failures.append(error)
                return None
            self.stopped.wait(RETRY)
        return None
