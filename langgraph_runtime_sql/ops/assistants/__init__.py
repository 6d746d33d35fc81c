"""Operations on assistants."""
