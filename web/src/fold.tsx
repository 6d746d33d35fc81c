// A part of the page that is drawn only while it is open.
import { useState, type ReactElement, type ReactNode } from "react";

interface Props {
  /** What is always shown. */
  summary: ReactElement<object, "summary">;
  className?: string;
  /** Whether it is open until a person opens or closes it. */
  isOpenFirst?: boolean;
  children: ReactNode;
}

export function Fold({ summary, className, isOpenFirst = false, children }: Props) {
  const [chosen, setChosen] = useState<boolean>();
  const isOpen = chosen ?? isOpenFirst;
  return (
    <details
      className={className}
      open={isOpen}
      onToggle={({ currentTarget: { open } }) => {
        // The event also tells of what the page has done.
        if (open !== isOpen) setChosen(open);
      }}
    >
      {summary}
      {isOpen && children}
    </details>
  );
}
