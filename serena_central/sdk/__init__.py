"""The public Python API: `from serena_central import sdk`."""

from serena_central.sdk.tasks import Task as Task
from serena_central.sdk.tasks import TaskFailed as TaskFailed
from serena_central.sdk.transcripts import Conversation as Conversation
from serena_central.sdk.transcripts import Message as Message
from serena_central.sdk.transcripts import Report as Report
from serena_central.sdk.transcripts import SessionUsage as SessionUsage
from serena_central.sdk.transcripts import UnknownSession as UnknownSession
from serena_central.sdk.transcripts import UsageRow as UsageRow
from serena_central.sdk.transcripts import messages as messages
from serena_central.sdk.transcripts import resume as resume
from serena_central.sdk.transcripts import sessions as sessions
from serena_central.sdk.transcripts import usage as usage
from serena_central.sdk.waves import WaveFailed as WaveFailed
from serena_central.sdk.waves import WaveResult as WaveResult
from serena_central.sdk.waves import execute_wave as execute_wave
