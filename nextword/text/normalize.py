"""Strings to bytes, and the two optional changes of a text: NFC and lower case.

Both lose information (the code is then not lossless), so neither is the default.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nextword.core.errors import DataError

if TYPE_CHECKING:
    from nextword.text.tokenizers import Fields


def to_bytes(text: str) -> bytes:
    """Encode a text as UTF-8; a lone surrogate, which JSON allows, is a DataError."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"the text contains a lone surrogate (U+{ord(text[error.start]):04X}) at character "
            f"{error.start + 1}, which is not a character; remove it or write the whole pair"
        ) from error


def is_text(data: bytes) -> bool:
    """Return whether the bytes are UTF-8 without NUL."""
    if b"\0" in data:
        return False
    try:
        return data.isascii() or bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


@dataclass(frozen=True)
class Normalizer:
    """Changes applied to a text before it is tokenized."""

    normalize: Literal["none", "nfc"] = "none"
    lowercase: bool = False

    @property
    def changes(self) -> bool:
        """Whether information may be lost."""
        return self.normalize != "none" or self.lowercase

    def text(self, text: str) -> str:
        """Normalize a text."""
        if self.lowercase:
            text = text.lower()
        return unicodedata.normalize("NFC", text) if self.normalize == "nfc" else text

    def data(self, data: bytes) -> bytes:
        """Normalize UTF-8 bytes, which must not begin or end inside a character."""
        if not self.changes:
            return data
        if data.isascii():
            return data.lower() if self.lowercase else data
        return self.text(data.decode("utf-8")).encode("utf-8")

    def to_json(self) -> dict[str, Any]:
        """Return the settings as stored in ``tokenizer.json``."""
        return {"normalize": self.normalize, "lowercase": self.lowercase}

    @classmethod
    def from_json(cls, fields: Fields) -> Normalizer:
        """Read and check what `to_json` wrote."""
        nfc = fields.text("normalize", ("none", "nfc")) == "nfc"
        return cls("nfc" if nfc else "none", fields.flag("lowercase"))
