// Components whose code is loaded before it is needed.
import { lazy, useState, type ComponentType } from "react";

/**
 * Return a component whose code comes later, and what loads it. Where the code is there already, the component is
 * drawn at once: one that waits for its code shows something else first, even for code that is there.
 */
export function preloaded<P extends object>(load: () => Promise<ComponentType<P>>) {
  let loaded: ComponentType<P> | undefined;
  const preload = async () => {
    loaded = await load();
    return { default: loaded };
  };
  const Later = lazy(preload);
  const Preloaded = (props: P) => {
    // The same one as long as it is shown.
    const [Found] = useState<ComponentType<P>>(() => loaded ?? Later);
    return <Found {...props} />;
  };
  // Where it fails, the component tries again when it is shown, and says so.
  return { Preloaded, preload: () => preload().then(() => undefined, () => undefined) };
}
