"""Files with known checksums, fetched from a mirror or a pinned public source."""

import hashlib
import io
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from decima.core import config
from decima.core.errors import ChecksumError, DataUnavailableError
from decima.core.files import atomic_write_bytes
from decima.core.progress import progress_bar

THREADS = 8
TIMEOUT_S = (5.0, 30.0)  # to connect, to receive
ATTEMPTS = 3


@dataclass(frozen=True)
class PinnedFiles:
    """Files of one source."""

    label: str  # what errors call it
    folder: str  # of the mirror
    url: str  # of the public source, pinned to one version
    checksums: Mapping[str, str]  # SHA-256 in hexadecimal by name
    hint: str  # how they can be had, for errors

    def check(self, content: bytes, name: str, origin: Path | str) -> None:
        """Compare content with the checksum of a file.

        Raises:
            ChecksumError: They differ; names the file, what was got and what was expected.
        """
        got, expected = hashlib.sha256(content).hexdigest(), self.checksums[name]
        if got != expected:
            raise ChecksumError(
                f"{origin}: got SHA-256 {got} ({len(content)} bytes), expected {expected} for {self.label} file {name}"
            )

    def is_verified(self, path: Path, name: str) -> bool:
        """Whether a file is there, unchanged."""
        try:
            self.check(path.read_bytes(), name, path)
        except (FileNotFoundError, ChecksumError):
            return False  # a damaged file is fetched again
        return True

    def fetch(
        self, destination: Path, *, force: bool = False, all_or_none: bool = False, progress: str | None = None
    ) -> Path:
        """Fetch missing files and verify each before it gets its name.

        Args:
            destination: Where to put them.
            force: Fetch again what is already there.
            all_or_none: Put files in place when all of them are verified; else each at once.
            progress: Label of a progress bar; None for no bar.

        Raises:
            DataUnavailableError: The source cannot be reached or lacks a file.
            ChecksumError: A file of the source differs from the checksum kept here.
        """
        missing = [name for name in self.checksums if force or not self.is_verified(destination / name, name)]
        if not missing:
            return destination
        held: dict[str, bytes] = {}

        def get(name: str, attempts: int) -> None:
            content = self._read(name, attempts)
            if all_or_none:
                held[name] = content
            else:
                atomic_write_bytes(destination / name, content)

        with progress_bar(progress, len(missing), "file") as bar:
            get(missing[0], 1)  # alone and once: an unreachable source is reported at once, not for every file
            bar.update()
            pool = ThreadPoolExecutor(THREADS)
            try:
                for _ in pool.map(lambda name: get(name, ATTEMPTS), missing[1:]):
                    bar.update()
            finally:
                pool.shutdown(cancel_futures=True)
        for name, content in held.items():
            atomic_write_bytes(destination / name, content)
        return destination

    def _read(self, name: str, attempts: int) -> bytes:
        """Verified content of a file of the mirror, or of the public source."""
        mirror = config.mirror_dir()
        content, origin = self._download(name, attempts) if mirror is None else self._of_mirror(name, mirror)
        self.check(content, name, origin)
        return content

    def _of_mirror(self, name: str, mirror: Path) -> tuple[bytes, str]:
        path = mirror / self.folder / name
        try:
            return path.read_bytes(), str(path)
        except OSError as error:
            raise DataUnavailableError(
                f"the mirror {mirror} has no readable file {path}: {error.strerror}. {self.hint}"
            ) from error

    def _download(self, name: str, attempts: int) -> tuple[bytes, str]:
        import pooch
        import requests

        url = f"{self.url}/{name}"
        download = pooch.HTTPDownloader(timeout=TIMEOUT_S)
        while True:
            attempts -= 1
            buffer = io.BytesIO()
            try:
                download(url, buffer, None)
                return buffer.getvalue(), url
            except requests.RequestException as error:
                if attempts == 0:
                    raise DataUnavailableError(f"cannot fetch {url}: {_reason(error)}. {self.hint}") from error
            time.sleep(1.0)


def _reason(error: Exception) -> str:
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT_S[0]:.0f} s"
    return type(error).__name__ + " (no network, or the host cannot be reached)"
