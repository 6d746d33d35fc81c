"""Operations on crons."""
