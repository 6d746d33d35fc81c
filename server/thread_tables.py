"""Tables of the graphs whose rows belong to a thread, and are deleted with it.

A learner's profile and what the ICP finder knows about companies belong to users and tenants: they
outlive threads.
"""

from threadhold.host import ThreadTable

THREAD_TABLES: tuple[ThreadTable, ...] = (
    # The project first: workers lock its row before they store a page.
    ThreadTable("research_projects", "project_id"),
    ThreadTable("research_pages", "project_id"),
    # The same for a session and its events, which a trigger keeps; the setting lets it accept this.
    ThreadTable("diagnosis_sessions", "session_id"),
    ThreadTable("diagnosis_events", "session_id", guard="diagnosis_erase_tenant"),
)
