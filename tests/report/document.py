"""A page taken apart: what it holds, for tests to look at."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}
TEXT = "#text"


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: "Element | None"
    children: list["Element"] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str = "") -> list["Element"]:
        """All elements beneath, of one kind or of any."""
        elements = [child for child in self.children if child.tag != TEXT]
        found = [child for child in elements if not tag or child.tag == tag]
        return found + [deeper for child in elements for deeper in child.all(tag)]

    def words(self) -> str:
        return self.text + "".join(child.words() for child in self.children)


class Document(HTMLParser):
    """Refuses what is not well nested."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = self._at = Element("", {}, None)
        self.feed(html)
        self.close()
        assert self._at is self.root, f"<{self._at.tag}> is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in <{tag}>"
        element = Element(tag, {name: value or "" for name, value in attrs}, self._at)
        self._at.children.append(element)
        if tag not in VOID:
            self._at = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._at.tag == tag, f"</{tag}> closes <{self._at.tag}>"
        assert self._at.parent
        self._at = self._at.parent

    def handle_data(self, data: str) -> None:
        self._at.children.append(Element(TEXT, {}, self._at, text=data))
