"""Unwraps the exception groups that task groups raise."""

from typing import cast

from serena_central.core.errors import SerenaCentralError


def only_cause(error: BaseException) -> BaseException:
    """The one error inside task groups' wrappings."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        if len(group.exceptions) != 1:
            return group
        error = group.exceptions[0]
    return error


def holds(error: BaseException, kind: type[Exception]) -> bool:
    """Whether an error is of a kind, or one of those that tasks failed of."""
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).subgroup(kind) is not None
    return isinstance(error, kind)


def reported_failure(error: BaseException) -> BaseException:
    """What tasks failed of, if all of that is for the caller to know; else the error or group itself."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    told, other = group.split(SerenaCentralError)
    if told is None or other is not None:
        return group
    first: BaseException = told
    while isinstance(first, BaseExceptionGroup):
        first = cast("BaseExceptionGroup[BaseException]", first).exceptions[0]
    return first
