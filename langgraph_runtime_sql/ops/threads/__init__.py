"""Operations on threads."""
