"""Executors of Dask and Ray, where these are installed."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any, Callable

from ._errors import InputError


def opened(name: str) -> Executor:
    """Returns an executor of the running cluster, or of one on this machine."""
    try:
        return _Dask() if name == "dask" else _Ray()
    except ImportError as missing:
        raise InputError(f"{name} is not installed: pip install 'bentpipe[{name}]'") from missing


class _Dask(Executor):
    """Submits functions to Dask, which starts them again where a worker dies."""

    def __init__(self) -> None:
        from distributed import Client, get_client

        self._own: Any = None
        client: Any
        try:
            client = get_client()
        except ValueError:
            # threads suffice: a run does not hold Python's lock
            client = self._own = Client(processes=False, dashboard_address=None)
        self._max_workers = max(1, sum(client.nthreads().values()))
        self._executor: Executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._executor.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends a cluster that was begun here; another one is the caller's."""
        if self._own is not None:
            self._own.close()


class _Ray(Executor):
    """Submits functions as tasks of Ray, which starts them again where a worker dies."""

    def __init__(self) -> None:
        import ray

        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False)
        self._max_workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._call = ray.remote(max_retries=3)(_call)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = self._call.remote(fn, args, kwargs).future()
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """The cluster goes on: it may be the caller's, and another sweep need not begin one again."""


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)
