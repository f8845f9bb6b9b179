"""Folders of sweeps that are elsewhere: any store that fsspec knows, ``s3://bucket/sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ._errors import InputError


def is_url(out: object) -> bool:
    """True for the address of a store, in place of a folder."""
    return isinstance(out, str) and "://" in out


class Store:
    """The folder of a sweep in a store. Files in it are whole or, as they carry a hash, not believed."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError as missing:
            raise InputError(f"{url} needs fsspec: pip install 'bentpipe[fsspec]'") from missing
        try:
            found: tuple[Any, str] = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            # a kind of store that is unknown, or whose library is not installed
            raise InputError(f"{url}: {error}") from error
        self._files, self._root = found[0], found[1].rstrip("/")

    def fetch(self, folder: Path) -> None:
        """Fetches the runs, and what says which version made them, as far as the folder lacks them."""
        self._files.invalidate_cache()
        there: dict[str, Any] = {}
        if self._files.exists(self._root):
            there = self._files.find(self._root, detail=True)
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        for path, about in there.items():
            name = path[len(self._root) :].lstrip("/")
            own = folder / name
            wanted = name == "sweep.json" or (name.startswith("runs/") and name.endswith(".json"))
            if wanted and not (own.is_file() and own.stat().st_size == about["size"]):
                own.write_bytes(self._files.cat_file(path))

    def send(self, folder: Path) -> None:
        """Sends all files of a folder, in the order of their names, and the runs before the tables."""
        for below in ("runs/*.json", "*"):
            for file in sorted(folder.glob(below)):
                if file.is_file():
                    name = f"{self._root}/{file.relative_to(folder).as_posix()}"
                    self._files.makedirs(name.rpartition("/")[0], exist_ok=True)
                    self._files.pipe_file(name, file.read_bytes())


__all__ = ["Store", "is_url"]
