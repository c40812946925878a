"""Our structs of the wire against `lsprotocol`, which is generated from LSP's own metamodel."""

import types
from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin

import attrs
import msgspec
import pytest
from lsprotocol import types as lsp

from serena_central.lsp import types as ours

FORMS: dict[type[msgspec.Struct], Sequence[type]] = {
    ours.LspPosition: (lsp.Position,),
    ours.LspRange: (lsp.Range,),
    ours.LspLocation: (lsp.Location, lsp.LocationLink),
    ours.LspSymbol: (lsp.DocumentSymbol, lsp.SymbolInformation),
    ours.LspTextEdit: (lsp.TextEdit, lsp.AnnotatedTextEdit),
    ours.LspDocument: (lsp.TextDocumentIdentifier, lsp.OptionalVersionedTextDocumentIdentifier),
    ours.LspDocumentChange: (lsp.TextDocumentEdit, lsp.CreateFile, lsp.RenameFile, lsp.DeleteFile),
    ours.LspWorkspaceEdit: (lsp.WorkspaceEdit,),
    ours.LspHover: (lsp.Hover,),
    ours.LspDiagnostic: (lsp.Diagnostic,),
    ours.LspDiagnosticReport: (lsp.RelatedFullDocumentDiagnosticReport,),
    ours.LspPublishedDiagnostics: (lsp.PublishDiagnosticsParams,),
    ours.LspHierarchyItem: (lsp.CallHierarchyItem, lsp.TypeHierarchyItem),
    ours.LspIncomingCall: (lsp.CallHierarchyIncomingCall,),
    ours.LspOutgoingCall: (lsp.CallHierarchyOutgoingCall,),
    ours.LspSignature: (lsp.SignatureInformation,),
    ours.LspSignatureHelp: (lsp.SignatureHelp,),
    ours.LspServerInfo: (lsp.ServerInfo,),
    ours.LspInitializeResult: (lsp.InitializeResult,),
    ours.LspProgressValue: (lsp.WorkDoneProgressBegin, lsp.WorkDoneProgressReport, lsp.WorkDoneProgressEnd),
    ours.LspProgress: (lsp.ProgressParams,),
    ours.LspRegistration: (lsp.Registration,),
    ours.LspRegistrations: (lsp.RegistrationParams,),
    ours.LspUnregistrations: (lsp.UnregistrationParams,),
    ours.LspConfigurationItem: (lsp.ConfigurationItem,),
    ours.LspConfigurationParams: (lsp.ConfigurationParams,),
    ours.LspLogMessage: (lsp.LogMessageParams,),
}
"""Each of our structs, and the forms of LSP's that it reads."""

SCALARS = {str: str, int: int, bool: bool, float: float}


def test_every_struct_of_the_wire_is_compared() -> None:
    defined = {
        found
        for found in vars(ours).values()
        if isinstance(found, type) and issubclass(found, msgspec.Struct) and found.__module__ == ours.__name__
    }
    assert defined == set(FORMS)


@pytest.mark.parametrize("struct", FORMS, ids=lambda struct: struct.__name__)
def test_a_struct_reads_what_lsp_says_is_sent(struct: type[msgspec.Struct]) -> None:
    forms = [_fields(form) for form in FORMS[struct]]
    for field in msgspec.structs.fields(struct):
        theirs = [form[field.encode_name] for form in forms if field.encode_name in form]
        assert theirs, f"LSP has no {field.encode_name} there"
        if field.required:
            assert len(theirs) == len(forms), f"{field.encode_name} is missing in some form"
            assert all(one.default is attrs.NOTHING for one in theirs), f"{field.encode_name} is optional in LSP"
        read = _scalars(field.type)
        if read:
            sent = set[type]().union(*(_scalars(one.type) for one in theirs))
            assert sent <= read, f"{field.encode_name}: LSP sends {sent}, we read {read}"


def _fields(form: type) -> dict[str, "attrs.Attribute[Any]"]:
    attrs.resolve_types(form, vars(lsp))
    return {_wire_name(field.name): field for field in attrs.fields(form)}


def _wire_name(name: str) -> str:
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(part.capitalize() for part in rest)


def _scalars(kind: Any) -> set[type]:
    """The JSON scalars that a type allows, an enumeration by its values. All else is left out."""
    if get_origin(kind) in (Union, types.UnionType):
        return set[type]().union(*(_scalars(one) for one in get_args(kind)))
    if kind in SCALARS:
        return {SCALARS[kind]} | ({int} if kind is float else set())
    if isinstance(kind, type) and issubclass(kind, (int, str)):
        return {int if issubclass(kind, int) else str}
    return set()
