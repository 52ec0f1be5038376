"""Strings to bytes, and the two changes of a text that can be asked for: NFC and lower case.

Both lose something (the code is then not lossless), so neither happens by default.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nextword.core.errors import DataError

if TYPE_CHECKING:
    from nextword.text.files import Fields


def to_bytes(text: str) -> bytes:
    """The UTF-8 bytes of a text; half a surrogate pair, which JSON lets through, is our error."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"the text holds half a surrogate pair (U+{ord(text[error.start]):04X}) at character "
            f"{error.start + 1}, which is no character; remove it or write the whole pair"
        ) from error


def is_text(data: bytes) -> bool:
    """Whether the bytes are UTF-8 without NUL."""
    if b"\0" in data:
        return False
    try:
        return data.isascii() or bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


@dataclass(frozen=True)
class Normalizer:
    """What happens to a text before it is cut into tokens."""

    normalize: Literal["none", "nfc"] = "none"
    lowercase: bool = False

    @property
    def changes(self) -> bool:
        """Whether anything may be lost."""
        return self.normalize != "none" or self.lowercase

    def text(self, text: str) -> str:
        """The text as the tokenizer sees it."""
        if self.lowercase:
            text = text.lower()
        return unicodedata.normalize("NFC", text) if self.normalize == "nfc" else text

    def data(self, data: bytes) -> bytes:
        """The same for UTF-8 bytes, which must not begin or end inside a character."""
        if not self.changes:
            return data
        if data.isascii():
            return data.lower() if self.lowercase else data
        return self.text(data.decode("utf-8")).encode("utf-8")

    def to_json(self) -> dict[str, Any]:
        """As it stands in ``tokenizer.json``."""
        return {"normalize": self.normalize, "lowercase": self.lowercase}

    @classmethod
    def from_json(cls, fields: Fields) -> Normalizer:
        """Read and check what `to_json` wrote."""
        nfc = fields.text("normalize", ("none", "nfc")) == "nfc"
        return cls("nfc" if nfc else "none", fields.flag("lowercase"))
