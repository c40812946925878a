"""Settings: the model, layered loading, the origin of every value."""

from serena_central.config.describe import Row as Row
from serena_central.config.describe import describe as describe
from serena_central.config.describe import template as template
from serena_central.config.layers import Loaded as Loaded
from serena_central.config.layers import Origin as Origin
from serena_central.config.layers import Problem as Problem
from serena_central.config.load import Sources as Sources
from serena_central.config.load import load_project_config as load_project_config
from serena_central.config.load import load_server_config as load_server_config
from serena_central.config.settings import ModuleSettings as ModuleSettings
from serena_central.config.settings import PoolPolicy as PoolPolicy
from serena_central.config.settings import ProjectSettings as ProjectSettings
from serena_central.config.settings import RetentionPolicy as RetentionPolicy
from serena_central.config.settings import ServerSettings as ServerSettings
from serena_central.config.settings import SessionPolicy as SessionPolicy
