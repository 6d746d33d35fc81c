"""Operations: what callers of the product routes can write to the tables of the graphs, and export."""

from threadhold.gate import Operation

DOCUMENT_PUT = Operation("document", "put", None)
DOCUMENT_DELETE = Operation("document", "delete", None)
FEEDBACK_PUT = Operation("feedback", "put", None)
NOTE_ADD = Operation("diagnosis", "add_notes", None)
SESSION_BRANCH = Operation("diagnosis", "branch", None)
SESSION_TAKE = Operation("diagnosis", "take_over", None)
SOURCE_ADD = Operation("diagnosis", "add_source", None)
PROFILE_UPDATE = Operation("profile", "update", None)
PROFILE_DELETE = Operation("profile", "delete", None)
MISTAKE_DELETE = Operation("mistake", "delete", None)
EXERCISE_ANSWER = Operation("exercise", "answer", None)
PROJECT_CREATE = Operation("project", "create", None)
PROJECT_UPDATE = Operation("project", "update", None)

SCORES_EXPORT = Operation("scores", "export", None, writes=False)
REPORT_EXPORT = Operation("report", "export", None, writes=False)
