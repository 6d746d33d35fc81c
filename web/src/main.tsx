import { createRoot } from "react-dom/client";
import { App } from "./app";
import { adopt } from "./sheets";
import { setTheme, theme } from "./theme";

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no element #root");
adopt(document);
setTheme(theme());
// A file that is dropped where nothing takes it would open in place of the page.
for (const name of ["dragover", "drop"] as const) {
  addEventListener(name, (event) => {
    if (event.defaultPrevented || event.dataTransfer?.types.includes("Files") !== true) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  });
}
createRoot(root).render(<App />);
