// The button that opens the documents.
import { useState } from "react";
import { Drawer } from "../../drawer";
import { Documents } from "./documents";
import { useUploads } from "./uploads";
import { w } from "./words";

export default function Header() {
  const [isOpen, setOpen] = useState(false);
  const working = useUploads().filter((each) => each.state === "reading").length;
  return (
    <>
      <button className="small" onClick={() => setOpen(true)}>
        {w("documents")}{working > 0 && <span className="meta"> · {working}</span>}
      </button>
      {isOpen && <Drawer title={w("documents")} onClose={() => setOpen(false)}><Documents /></Drawer>}
    </>
  );
}
