"""LSP's own structures, as far as they are used (LSP 3.17). Positions here are in the negotiated encoding's units.

Servers differ in what they leave out and in which of two forms they choose, so structs hold every form's fields, all
but the certain ones optional; `conversion` makes `answers` of them. What comes by the ten thousand is hidden from the
garbage collector (`gc=False`): it holds no cycles, and a full collection in the middle of decoding blocks everybody.
"""

from typing import Any

import msgspec


class LspPosition(msgspec.Struct, gc=False):
    line: int
    character: int


class LspRange(msgspec.Struct, gc=False):
    start: LspPosition
    end: LspPosition


class LspLocation(msgspec.Struct, rename="camel", gc=False):
    """Location, or LocationLink with its `target…` fields."""

    uri: str = ""
    range: LspRange | None = None
    target_uri: str = ""
    target_range: LspRange | None = None
    target_selection_range: LspRange | None = None

    def __post_init__(self) -> None:
        if not (self.uri or self.target_uri):
            raise ValueError("a place without a uri")  # msgspec tells it as an answer of another shape


class LspSymbol(msgspec.Struct, rename="camel", gc=False):
    """DocumentSymbol (`range`, `selectionRange`, `children`), or SymbolInformation (`location`, `containerName`)."""

    name: str
    kind: int
    detail: str | None = None
    range: LspRange | None = None
    selection_range: LspRange | None = None
    children: list["LspSymbol"] | None = None
    location: LspLocation | None = None
    container_name: str | None = None


class LspTextEdit(msgspec.Struct, rename="camel", gc=False):
    """TextEdit, or AnnotatedTextEdit."""

    range: LspRange
    new_text: str


class LspDocument(msgspec.Struct):
    uri: str


class LspDocumentChange(msgspec.Struct, rename="camel"):
    """TextDocumentEdit (`textDocument`, `edits`), or an operation on a file: `kind` is create, rename or delete."""

    kind: str | None = None
    text_document: LspDocument | None = None
    edits: list[LspTextEdit] = []
    old_uri: str = ""
    new_uri: str = ""


class LspWorkspaceEdit(msgspec.Struct, rename="camel"):
    changes: dict[str, list[LspTextEdit]] | None = None
    document_changes: list[LspDocumentChange] | None = None


class LspHover(msgspec.Struct):
    contents: Any
    """MarkupContent, MarkedString or a list of MarkedString."""


class LspDiagnostic(msgspec.Struct):
    range: LspRange
    message: str
    severity: int | None = None
    code: int | str | None = None
    source: str | None = None


class LspDiagnosticReport(msgspec.Struct):
    """DocumentDiagnosticReport; `kind` is always "full", since no previous result is ever named."""

    items: list[LspDiagnostic] = []


class LspPublishedDiagnostics(msgspec.Struct):
    uri: str
    diagnostics: list[LspDiagnostic]
    version: int | None = None


class LspHierarchyItem(msgspec.Struct, rename="camel"):
    """CallHierarchyItem or TypeHierarchyItem, but for `data`, which only the server can read."""

    name: str
    kind: int
    uri: str
    range: LspRange
    selection_range: LspRange
    detail: str | None = None


class LspIncomingCall(msgspec.Struct, rename="camel"):
    caller: msgspec.Raw = msgspec.field(name="from")
    from_ranges: list[LspRange] = []


class LspOutgoingCall(msgspec.Struct, rename="camel"):
    callee: msgspec.Raw = msgspec.field(name="to")
    from_ranges: list[LspRange] = []


class LspSignature(msgspec.Struct):
    label: str
    documentation: Any = None


class LspSignatureHelp(msgspec.Struct):
    signatures: list[LspSignature] = []


class LspServerInfo(msgspec.Struct):
    name: str = ""
    version: str | None = None


class LspInitializeResult(msgspec.Struct, rename="camel"):
    capabilities: dict[str, Any] = {}
    server_info: LspServerInfo | None = None


class LspProgressValue(msgspec.Struct):
    kind: str = ""
    title: str = ""
    message: str | None = None
    percentage: float | None = None


class LspProgress(msgspec.Struct):
    token: int | str
    value: Any = None


class LspRegistration(msgspec.Struct, rename="camel"):
    id: str
    method: str
    register_options: Any = None


class LspRegistrations(msgspec.Struct):
    registrations: list[LspRegistration] = []


class LspUnregistrations(msgspec.Struct):
    """`unregisterations` is how LSP 3.17 spells it."""

    unregisterations: list[LspRegistration] = []


class LspConfigurationItem(msgspec.Struct):
    section: str | None = None


class LspConfigurationParams(msgspec.Struct):
    items: list[LspConfigurationItem] = []


class LspLogMessage(msgspec.Struct):
    message: str = ""
