import { useState } from "react";
import { t } from "./i18n";

/** Ask for a token. It is kept in the tab's session storage, never in the address. */
export function SignIn({ again, onToken }: { again: boolean; onToken: (value: string) => void }) {
  const [value, setValue] = useState("");
  return (
    <main className="signin">
      <form
        className="card stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (value.trim() !== "") onToken(value.trim());
        }}
      >
        <h1>Threadhold</h1>
        <p>{t("signInHelp")}</p>
        {again && <p className="alert" role="alert">{t("refused")}</p>}
        <label className="field">
          <span>{t("token")}</span>
          <input
            type="password" autoComplete="off" autoFocus value={value}
            onChange={(event) => setValue(event.target.value)}
          />
        </label>
        <button className="primary" disabled={value.trim() === ""}>{t("signIn")}</button>
      </form>
    </main>
  );
}
