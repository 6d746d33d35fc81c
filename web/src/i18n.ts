// Words of the page, in English and Portuguese.

const en = {
  newThread: "New conversation", search: "Search conversations", showArchived: "Show archived",
  inbox: "Inbox", rename: "Rename", archive: "Archive", unarchive: "Restore", delete: "Delete",
  reallyDelete: "Delete this conversation? It cannot be undone.", save: "Save", cancel: "Cancel",
  noThreads: "No conversations yet. Choose an assistant and write a message.",
  noMatch: "No conversation has these words.", send: "Send", stop: "Stop", retry: "Try again",
  edit: "Edit", regenerate: "Answer again", copy: "Copy", message: "Message",
  placeholder: "Write a message", waitingRuns: "Waiting messages", runningNow: "Answering",
  withdraw: "Withdraw", empty: "Write the first message. The answer appears here.",
  start: "What do you want to do?", token: "Token", signIn: "Sign in", signOut: "Sign out",
  signInHelp: "This server needs a token. Paste yours; the page forgets it when you close the tab.",
  refused: "The server refuses this token. Paste another one.",
  offline: "The server does not answer. Check that it runs, then try again.",
  lost: "The connection was lost. What you wrote is kept.", reconnect: "Reconnect",
  busy: "Too many requests. Wait a moment, then try again.",
  gone: "This conversation does not exist, or it belongs to another user.",
  failed: "The run failed.", readOnly: "Read-only",
  locked: "This conversation is closed. You can read it.", resumeNew: "Resume in new thread",
  versions: "Version", previous: "Previous version", next: "Next version", you: "You",
  assistant: "Assistant", menu: "Conversations", close: "Close", options: "Options",
  question: "A question for you", answer: "Answer", other: "Your own answer",
  noInbox: "Nothing waits for you. When an assistant asks something, the question appears here.",
  open: "Open", answered: "answered", by: "by", language: "Language", theme: "Theme",
  website: "Website of the company", begin: "Begin", choose: "Several conversations match. Choose one.",
  candidates: "Candidates", company: "Company", score: "Score", why: "Parts of the score",
  exportCsv: "Export CSV", noCandidates: "No candidates yet. They appear after the search.",
  enrichment: "Enrichment", done: "done", of: "of", profile: "Profile", correction: "Correction",
  summary: "Summary", sources: "Sources", loading: "Loading", thinking: "The assistant is answering",
  skip: "Skip to the conversation", notStreamed: "Stopped.", checkedBy: "Checked by", noMistakes: "No mistakes found.",
  mistakes: "Mistakes", system: "System", light: "Light", dark: "Dark", more: "more",
};

export type Word = keyof typeof en;

const pt: Record<Word, string> = {
  newThread: "Nova conversa", search: "Procurar conversas", showArchived: "Mostrar arquivadas",
  inbox: "Perguntas", rename: "Mudar o nome", archive: "Arquivar", unarchive: "Restaurar", delete: "Apagar",
  reallyDelete: "Apagar esta conversa? Não é possível desfazer.", save: "Guardar", cancel: "Cancelar",
  noThreads: "Ainda não há conversas. Escolha um assistente e escreva uma mensagem.",
  noMatch: "Nenhuma conversa tem estas palavras.", send: "Enviar", stop: "Parar", retry: "Tentar de novo",
  edit: "Editar", regenerate: "Responder de novo", copy: "Copiar", message: "Mensagem",
  placeholder: "Escreva uma mensagem", waitingRuns: "Mensagens em espera", runningNow: "A responder",
  withdraw: "Retirar", empty: "Escreva a primeira mensagem. A resposta aparece aqui.",
  start: "O que quer fazer?", token: "Token", signIn: "Entrar", signOut: "Sair",
  signInHelp: "Este servidor precisa de um token. Cole o seu; a página esquece-o quando fechar o separador.",
  refused: "O servidor recusa este token. Cole outro.",
  offline: "O servidor não responde. Veja se está a correr e tente de novo.",
  lost: "A ligação caiu. O que escreveu não se perdeu.", reconnect: "Ligar de novo",
  busy: "Demasiados pedidos. Espere um momento e tente de novo.",
  gone: "Esta conversa não existe ou é de outro utilizador.",
  failed: "A execução falhou.", readOnly: "Só leitura",
  locked: "Esta conversa está fechada. Pode lê-la.", resumeNew: "Continuar numa conversa nova",
  versions: "Versão", previous: "Versão anterior", next: "Versão seguinte", you: "Você",
  assistant: "Assistente", menu: "Conversas", close: "Fechar", options: "Opções",
  question: "Uma pergunta para si", answer: "Responder", other: "A sua própria resposta",
  noInbox: "Nada espera por si. Quando um assistente perguntar algo, a pergunta aparece aqui.",
  open: "Abrir", answered: "respondida", by: "por", language: "Idioma", theme: "Tema",
  website: "Site da empresa", begin: "Começar", choose: "Há várias conversas. Escolha uma.",
  candidates: "Candidatas", company: "Empresa", score: "Pontuação", why: "Partes da pontuação",
  exportCsv: "Exportar CSV", noCandidates: "Ainda não há candidatas. Aparecem depois da pesquisa.",
  enrichment: "Enriquecimento", done: "prontas", of: "de", profile: "Perfil", correction: "Correção",
  summary: "Resumo", sources: "Fontes", loading: "A carregar", thinking: "O assistente está a responder",
  skip: "Ir para a conversa", notStreamed: "Parado.", checkedBy: "Verificado por", noMistakes: "Sem erros.",
  mistakes: "Erros", system: "Sistema", light: "Claro", dark: "Escuro", more: "mais",
};

export const languages = { en: "English", pt: "Português" } as const;
export type Language = keyof typeof languages;

const KEY = "threadhold-language";

export function language(): Language {
  const chosen = localStorage.getItem(KEY) ?? navigator.language.slice(0, 2);
  return chosen === "pt" ? "pt" : "en";
}

export function setLanguage(value: Language): void {
  localStorage.setItem(KEY, value);
}

export const words = { en, pt };

export function t(word: Word): string {
  return words[language()][word];
}

/** Return the words of a product, in the language of the page. */
export function wordsOf<W extends string>(en: Record<W, string>, pt: Record<W, string>): (word: W) => string {
  return (word) => (language() === "pt" ? pt : en)[word];
}

/** Say a time in words, such as "3 minutes ago". */
export function ago(iso: string, now = Date.now()): string {
  const seconds = (Date.parse(iso) - now) / 1000;
  const format = new Intl.RelativeTimeFormat(language(), { numeric: "auto" });
  const units: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86400], ["hour", 3600], ["minute", 60]];
  for (const [unit, size] of units) {
    if (-seconds >= size) return format.format(Math.ceil(seconds / size), unit);
  }
  return format.format(0, "minute");
}
