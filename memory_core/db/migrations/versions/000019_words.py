"""The words of each memory, for rankings that look at words as well as at vectors.

Why: a vector alone misses names, numbers and ids. The words stand in the memory's own row and are computed from its text
by the database itself, so that the one UPDATE which erases the text erases them too, and a row never has another's words.

Revision ID: 000019
"""

from alembic import op

revision = "000019"
down_revision = "000018"
branch_labels = None
depends_on = None


# Typographic quotes and dashes are letters to a database whose locale is C: a word beside one would be another word.
WORDS = """
ALTER TABLE memory ADD COLUMN words TSVECTOR GENERATED ALWAYS AS (
    to_tsvector('english'\\:\\:regconfig, translate(text, '‘’‚‛“”„‟«»‹›–—―…·•', '                  '))
) STORED
"""


def upgrade() -> None:
    op.execute(WORDS)
    # The planner's samples would keep the words of what is erased.
    op.execute("ALTER TABLE memory ALTER COLUMN words SET STATISTICS 0")


def downgrade() -> None:
    op.execute("ALTER TABLE memory DROP COLUMN words")
