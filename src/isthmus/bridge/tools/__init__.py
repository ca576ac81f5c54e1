"""Tools, from the request to the upstream body and back: one plan, made once, read by builder and assembler."""

from isthmus.bridge.tools.catalog import build_tool_catalog
from isthmus.bridge.tools.choice import plan_provider_tool_choice, render_provider_tool_choice
from isthmus.bridge.tools.custom_input import CustomInput, CustomInputStream, read_custom_input
from isthmus.bridge.tools.declare import plan_tool_declaration, render_provider_tool_declarations
from isthmus.bridge.tools.grammar import GrammarVerdict, check_grammar, examine_input
from isthmus.bridge.tools.names import create_provider_name_allocator, default_tool_name_codec, name_past_call
from isthmus.bridge.tools.plan import plan_tools
from isthmus.bridge.tools.repair import repair_input
from isthmus.bridge.tools.restore import find_identity, restore_tool_call
from isthmus.bridge.tools.schema import project_parameters
from isthmus.bridge.tools.types import (
    CatalogTool,
    ProviderCall,
    RestoredCall,
    ToolChoicePlan,
    ToolDeclarationPlan,
    ToolIdentity,
    ToolIdentityMap,
    ToolPlan,
)

__all__ = [
    "CatalogTool",
    "CustomInput",
    "CustomInputStream",
    "GrammarVerdict",
    "ProviderCall",
    "RestoredCall",
    "ToolChoicePlan",
    "ToolDeclarationPlan",
    "ToolIdentity",
    "ToolIdentityMap",
    "ToolPlan",
    "build_tool_catalog",
    "check_grammar",
    "create_provider_name_allocator",
    "default_tool_name_codec",
    "examine_input",
    "find_identity",
    "name_past_call",
    "plan_provider_tool_choice",
    "plan_tool_declaration",
    "plan_tools",
    "project_parameters",
    "read_custom_input",
    "render_provider_tool_choice",
    "render_provider_tool_declarations",
    "repair_input",
    "restore_tool_call",
]
