"""Every test that the descriptions behind Chorus name is here under its name, or was overruled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

NAMED = [
    "test_message_persisted_to_sqlite",
    "test_message_includes_agent_name_and_thread_id",
    "test_message_includes_timestamp",
    "test_messages_queryable_by_agent",
    "test_rolling_window_returns_messages_within_window",
    "test_rolling_window_excludes_old_messages",
    "test_rolling_window_default_is_one_day",
    "test_rolling_window_configurable",
    "test_clear_advances_last_clear_time",
    "test_clear_excludes_messages_before_clear_time",
    "test_clear_does_not_delete_messages_from_db",
    "test_messages_after_clear_are_included",
    "test_multiple_clears_use_most_recent",
    "test_context_includes_system_prompt",
    "test_context_includes_agent_docs",
    "test_context_includes_thread_status",
    "test_context_includes_rolling_window_messages",
    "test_context_window_bounded_by_clear_time_or_rolling_window",
    "test_save_creates_session_json_file",
    "test_save_stores_metadata_in_sqlite",
    "test_save_generates_summary",
    "test_save_does_not_clear_context",
    "test_save_filename_format",
    "test_save_with_custom_description",
    "test_restore_loads_saved_messages",
    "test_restore_nonexistent_id_raises",
    "test_list_sessions_returns_all_snapshots",
    "test_list_sessions_ordered_by_timestamp_desc",
    "test_context_survives_restart_via_sqlite",
    "test_clear_time_survives_restart",
    "test_generate_summary_calls_llm",
    "test_generate_summary_returns_short_text",
    "test_generate_summary_handles_llm_failure_gracefully",
    "test_context_clear_command_advances_clear_time",
    "test_context_save_command_creates_snapshot",
    "test_context_history_command_returns_embed",
    "test_context_restore_command_loads_session",
    "test_context_commands_no_active_agent_in_channel",
    "test_save_session_creates_json_file",
    "test_save_session_stores_metadata_in_sqlite",
    "test_save_session_generates_summary",
    "test_save_session_clears_context_after_save",
    "test_save_session_filename_format",
    "test_save_session_with_custom_description",
    "test_save_session_empty_context_raises",
    "test_restore_session_loads_messages",
    "test_restore_session_sets_context",
    "test_restore_session_nonexistent_id_raises",
    "test_restore_session_corrupted_file_raises",
    "test_clear_context_empties_messages",
    "test_clear_context_does_not_save",
    "test_list_sessions_returns_all_sessions",
    "test_list_sessions_empty_returns_empty",
    "test_list_sessions_includes_summary",
    "test_idle_timer_triggers_after_timeout",
    "test_idle_timer_resets_on_message",
    "test_idle_timer_auto_save_creates_session",
    "test_idle_timer_posts_summary_to_channel",
    "test_idle_timer_configurable_timeout",
    "test_idle_timer_no_trigger_when_context_empty",
    "test_session_json_roundtrip",
    "test_session_includes_tool_use_messages",
    "test_session_slug_generation_from_description",
    "test_session_slug_generation_auto",
    "test_context_save_command_calls_session_manager",
    "test_context_clear_command_calls_clear",
    "test_context_save_command_no_active_agent_in_channel",
]
OVERRULED = {
    "test_rolling_window_default_is_one_day": "the window is eight hours by default",
    "test_save_session_clears_context_after_save": "saving changes nothing in the context",
    "test_context_commands_no_active_agent_in_channel": "there are no channels, and always a persona",
    "test_context_save_command_no_active_agent_in_channel": "there are no channels, and always a persona",
}
TESTS = Path(__file__).parent
WRITTEN = {
    name
    for path in TESTS.rglob("test_*.py")
    for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
}


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_is_written_unless_there_is_a_reason_why_not(name: str) -> None:
    assert (name in WRITTEN) != (name in OVERRULED)


def test_no_name_is_listed_twice_and_no_reason_is_given_for_another_test() -> None:
    assert len(NAMED) == len(set(NAMED)) == 67
    assert set(OVERRULED) <= set(NAMED)
