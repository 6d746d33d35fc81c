import { createRoot } from "react-dom/client";
import { App } from "./app";
import "./styles.css";

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no element #root");
createRoot(root).render(<App />);
