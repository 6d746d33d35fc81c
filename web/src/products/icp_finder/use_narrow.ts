// Whether the window is as narrow as a phone: the width below which the sidebar is hidden.
import { useSyncExternalStore } from "react";

const narrow = () => matchMedia("(max-width: 760px)");

function listen(onChange: () => void): () => void {
  const query = narrow();
  query.addEventListener("change", onChange);
  return () => query.removeEventListener("change", onChange);
}

export const useNarrow = (): boolean => useSyncExternalStore(listen, () => narrow().matches);
