;;; demo.el --- A session on the project's own sources  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What `make demo' runs in Emacs.  Everything goes through the commands
;; that users have; what they do is checked, so that the demo is a test.

;;; Code:

(require 'cl-lib)
(require 'contexture)
(require 'contexture-list)
(require 'contexture-conversation)
(require 'contexture-dashboard)
(eval-when-compile (require 'subr-x))

(defconst contexture-demo-root
  (expand-file-name "../" (file-name-directory (or load-file-name buffer-file-name)))
  "The project's folder.")

(defconst contexture-demo-folder (expand-file-name "build/demo/" contexture-demo-root)
  "Where the demo keeps its state.")

(defconst contexture-demo-rendering (expand-file-name "rendered.md" contexture-demo-folder)
  "Where the first session leaves what it rendered, for the second to compare.")

(defun contexture-demo--project (_directory)
  "Return this project, whose sources may have come without version control."
  (cons 'transient contexture-demo-root))

(add-hook 'project-find-functions #'contexture-demo--project)

(defun contexture-demo-serve (folder &rest args)
  "Have the server keep its state in FOLDER of the demo, and give it ARGS."
  (when-let* ((program (or (getenv "CONTEXTURE_BIN")
                           (when-let* ((target (getenv "CARGO_TARGET_DIR")))
                             (expand-file-name "release/contexture" target)))))
    (setq contexture-server-command (expand-file-name program contexture-demo-root)))
  (setq contexture-server-args
        (append (list "--state" (expand-file-name folder contexture-demo-folder)) args)))

;;;; The scripted session

(defmacro contexture-demo--until (what condition)
  "Wait until CONDITION holds; fail, naming WHAT, when it does not."
  (declare (indent 1))
  `(let ((end (+ (float-time) 20)))
     (while (not ,condition)
       (when (> (float-time) end)
         (contexture-demo--expect nil ,what))
       (accept-process-output nil 0.01))))

(defmacro contexture-demo--do (what &rest body)
  "Say WHAT is going to be marked, run BODY, and wait for its message."
  (declare (indent 1))
  `(progn
     (contexture-demo--princ (format "Marking %s\n  " ,what))
     ,@body
     (contexture-demo--settle)))

(defun contexture-demo-mark ()
  "Mark this and that with a clock of last week, and show what became of it."
  (contexture-demo-serve
   "state" "--fixed-time" (format-time-string "%s" (time-subtract nil (* 7 24 60 60))))
  (find-file (expand-file-name "elisp/contexture.el" contexture-demo-root))
  (contexture-demo--mark-all)
  (contexture-demo--heading "The list, M-x contexture-list")
  (contexture-demo--princ (contexture-demo--list-text 4))
  (contexture-demo--heading "What the model gets, M-x contexture-preview")
  (let ((text (contexture-demo--preview-text)))
    (contexture-demo--check-rendering text)
    (contexture-demo--princ text)
    (let ((coding-system-for-write 'utf-8-unix))
      (write-region text nil contexture-demo-rendering nil 'quiet)))
  (contexture-demo--take-back))

(defun contexture-demo--mark-all ()
  "Mark a region, a file, a symbol and a text that is not saved."
  (contexture-demo--do "a region, the group of the options"
    (contexture-demo--mark-lines "(defgroup contexture nil" 6)
    (contexture-add-region (region-beginning) (region-end)))
  (contexture-demo--do "a file, which the server reads"
    (contexture-add-file (expand-file-name "src/main.rs" contexture-demo-root)))
  (contexture-demo--do "a symbol, wherever it is defined"
    (contexture-add-symbol "contexture--count"))
  (contexture-demo--do "a region with an edit that is not saved"
    (goto-char (point-min))
    (search-forward "(provide 'contexture)")
    (beginning-of-line)
    (insert ";; A line that is in no file.\n")
    (contexture-demo--mark-lines ";; A line that is in no file." 2)
    (contexture-add-region (region-beginning) (region-end))))

(defun contexture-demo--take-back ()
  "Clear the context and undo that."
  (contexture-demo--heading "Clear, and undo")
  (contexture-clear)
  (contexture-demo--expect-count 0)
  (contexture-undo)
  (contexture-demo--expect-count 4)
  (contexture-demo--settle))

(defun contexture-demo-return ()
  "Find again, after a restart of everything, what was marked."
  (contexture-demo-serve "state")
  (find-file (expand-file-name "elisp/contexture.el" contexture-demo-root))
  (contexture-demo--princ (contexture-demo--list-text 4))
  (let* ((parts (split-string (contexture-demo--preview-text)
                              " \\[as of [^];]+; stale: its text was not saved]"))
         (text (string-join parts)))
    (contexture-demo--expect (= 2 (length parts))
                             "the edit that was not saved, and nothing else, is called so")
    (contexture-demo--expect
     (equal text (with-temp-buffer
                   (let ((coding-system-for-read 'utf-8-unix))
                     (insert-file-contents contexture-demo-rendering))
                   (buffer-string)))
     "the rendering is the same, byte for byte")
    (contexture-demo--princ
     (format "The same %d items render as the same %d characters, \
but the edit that was not saved is called stale.\n" 4 (length text))))
  (contexture-undo)
  (contexture-demo--expect-count 3)
  (contexture-demo--settle)
  (contexture-demo--princ "Even last week's steps can be undone.\n"))

;;;; A conversation

(defconst contexture-demo-script "\
[[answer]]
delay = 0.05
text = [\"`contexture--count` \", \"returns a number \", \"with its noun, \", \"and puts an s \",
        \"behind the noun \", \"unless the number is 1:\\n\\n\",
        \"```elisp\\n(contexture--count 2 \\\"item\\\")\\n\", \"     ⇒ \\\"2 items\\\"\\n```\\n\"]
usage = { input = 250, output = 52 }
"
  "What the model says: a script, as it needs no key and no network.")

(defun contexture-demo--configuration ()
  "Return the arguments for a server with a model that plays the script."
  (let ((script (expand-file-name "play.toml" contexture-demo-folder))
        (config (expand-file-name "talk.toml" contexture-demo-folder))
        (coding-system-for-write 'utf-8-unix))
    (write-region contexture-demo-script nil script nil 'quiet)
    (write-region (format "[[providers]]\nname = \"play\"\nkind = \"scripted\"\n\
model = \"scripted\"\nscript = %S\n" script)
                  nil config nil 'quiet)
    (list "--config" config)))

(defun contexture-demo-talk ()
  "Ask the model that plays a script about a function, and show its answer."
  (apply #'contexture-demo-serve "state" (contexture-demo--configuration))
  (setq contexture-conversation-history-file nil)
  (find-file (expand-file-name "elisp/contexture.el" contexture-demo-root))
  (goto-char (point-min))
  (search-forward "(defun contexture--count")
  (contexture-demo--do "a definition, which the model is to see"
    (contexture-add-defun))
  (contexture-conversation "demo")
  (set-buffer (window-buffer))
  (contexture-demo--settle)
  (contexture-demo--heading "A question, and the answer as it comes")
  (contexture-demo--converse "What does contexture--count return?")
  (contexture-demo--heading "Why the model saw what it saw, M-x contexture-explain")
  (contexture-demo--princ (contexture-demo--report)))

(defun contexture-demo--converse (question)
  "Ask QUESTION, and show each piece of the answer when it is there."
  (let ((pieces 0))
    (add-hook 'contexture-notification-functions
              (lambda (method params)
                (when (and (eq method 'progress) (eq (plist-get params :kind) :text))
                  (setq pieces (1+ pieces))
                  (contexture-demo--princ (plist-get params :text)))))
    (contexture-demo--princ (format "> %s\n" question))
    (goto-char (point-max))
    (insert question)
    (contexture-conversation-send)
    (contexture-demo--until "the answer is there" (not (contexture-conversation--busy-p)))
    (contexture-demo--settle)
    (contexture-demo--expect (= pieces 8) "the answer came in eight pieces")
    (let ((shown (buffer-string)))
      (contexture-demo--expect (string-match "^250 tokens in, 52 out" shown)
                               "the tokens are shown")
      (contexture-demo--princ
       (format "\n%s (in %d pieces)\n" (match-string 0 shown) pieces)))))

(defun contexture-demo--report ()
  "Return the report of the last window of the conversation."
  (save-window-excursion
    (contexture-explain nil (contexture-conversation--session-id))
    (contexture-demo--until "the report is there" (get-buffer contexture-explain-buffer))
    (set-buffer contexture-explain-buffer)
    (contexture-demo--settle)
    (let ((text (contexture-demo--shown-text)))
      (contexture-demo--expect (string-match-p "^+ items +[0-9]+ +it fits" text)
                               (format "the report has the items, got\n%s" text))
      text)))

(defun contexture-demo--settle ()
  "Wait until every call is answered and its message was shown."
  (contexture-demo--until "no call waits"
    (and (contexture-running-p)
         (= 0 (hash-table-count (oref (contexture-current-connection) unanswered)))))
  ;; Answers are handed on by timers, one after the other.
  (accept-process-output nil 0.05)
  (contexture-demo--until "no call waits any more"
    (= 0 (hash-table-count (oref (contexture-current-connection) unanswered))))
  (accept-process-output nil 0.05))

(defun contexture-demo--expect (condition what)
  "End Emacs with an error unless CONDITION holds; WHAT says what was expected."
  (unless condition
    (princ (format "\nThe demo failed: not as expected: %s\n" what))
    (kill-emacs 1)))

(defun contexture-demo--expect-count (count)
  "Expect this buffer's context to have COUNT items."
  (contexture-demo--expect
   (equal count (plist-get (contexture-request 'list-items
                                               (list :manager (contexture-adding-context)
                                                     :count-only t))
                           :count))
   (format "the context has %d items" count)))

(defun contexture-demo--mark-lines (text lines)
  "Mark LINES lines of this buffer, from the first one with TEXT."
  (goto-char (point-min))
  (search-forward text)
  (beginning-of-line)
  (push-mark (point) t t)
  (forward-line lines))

(defun contexture-demo--list-text (count)
  "Return the text of the list, which must come to have COUNT items."
  (set-frame-size (selected-frame) 100 40)
  (save-window-excursion
    (contexture-list (contexture-adding-context))
    (contexture-demo--until "the list shows all items"
      (= count (length tabulated-list-entries)))
    (prog1 (concat (string-trim-left (string-replace "%%" "%" header-line-format)) "\n\n"
                   (contexture-demo--shown-text))
      (kill-buffer))))

(defun contexture-demo--shown-text ()
  "Return the text of this buffer as a window would show it.
A batch Emacs has no window that would align columns and cut cells."
  (let ((text "") (position (point-min)) next)
    (while (< position (point-max))
      (setq next (next-single-property-change position 'display nil (point-max))
            text (concat text
                         (pcase (get-text-property position 'display)
                           (`(space :align-to ,(and column (pred natnump)))
                            (make-string (max 0 (- column (contexture-demo--column text))) ?\s))
                           ((and shown (pred stringp)) shown)
                           (_ (buffer-substring-no-properties position next))))
            position next))
    (replace-regexp-in-string " +$" "" text)))

(defun contexture-demo--column (text)
  "Return the column at which TEXT ends."
  (string-width (substring text (or (string-match "[^\n]*\\'" text) 0))))

(defun contexture-demo--preview-text ()
  "Return what the preview shows."
  (save-window-excursion
    (contexture-preview (contexture-adding-context))
    (buffer-substring-no-properties (point-min) (point-max))))

(defun contexture-demo--check-rendering (text)
  "Expect TEXT to have each item under its heading and in its fence."
  (dolist (regexp '("\\`## Context\n\n### Code (from elisp/contexture\\.el:[0-9]+-[0-9]+)\n\
```elisp\n(defgroup contexture nil\n"
                    "\n```\n\n### File (from src/main\\.rs)\n```rust\n//! "
                    "\n```\n\n### Code (from elisp/contexture\\.el:[0-9]+-[0-9]+)\n\
```elisp\n(defun contexture--count "
                    "\n```\n\n### Code (from elisp/contexture\\.el:[0-9]+-[0-9]+)\n\
```elisp\n;; A line that is in no file\\.\n(provide 'contexture)\n```\n\n\\'"))
    (contexture-demo--expect (string-match-p regexp text)
                             (format "the rendering matches %S, got\n%s" regexp text))))

(defun contexture-demo--heading (text)
  "Print TEXT as a heading."
  (contexture-demo--princ (format "\n-- %s --\n\n" text)))

(defun contexture-demo--princ (text)
  "Print TEXT where the messages go, so that they keep their order."
  (let ((coding-system-for-write 'utf-8-unix))
    (princ text #'external-debugging-output)))

;;;; The tour

(defconst contexture-demo-tour-text "\
A short tour of Contexture

On the left is a source file of this project. Try the keys below
there. They begin with \\`C-c x', which this demo has bound; in
your own Emacs you choose the prefix.

1. Put point in a function and press \\`C-c x d': the definition
   is added to this buffer's context. The echo area says what
   was added, where to, and what it costs.

2. Mark some lines (\\`C-SPC', then move) and press \\`C-c x r'.
   Edit them first, if you like: what you see is what is sent.

3. \\`C-c x f' adds a file, \\`C-c x s' the definition of a
   symbol, wherever it is.

4. \\`C-c x l' lists the context. There, \\`RET' goes to the
   source, \\`SPC' shows an item, \\`P' pins it, \\`d' and \\`x'
   remove it, \\`C-/' takes anything back. \\`q' leaves.

5. \\`C-c x p' shows what a model would get. \\`C-c x w' copies
   it, \\`C-c x i' inserts it at point.

6. \\`C-c x c' clears the context, \\`C-c x u' undoes that.

7. \\`C-c x R' talks with a model about it. The one here plays a
   script, and always says the same; \\`C-c x K' sets up another.

Now leave Emacs with \\`C-x C-c' and run `make demo' again:
everything that you marked is still there.

The state of this demo is in build/demo/tour; your own, if you
have any, is not touched. The manual: docs/contexture.texi, or
\\`M-x info' after `make install'.
"
  "The tour, with keys quoted.")

(defun contexture-demo-tour ()
  "Show the tour beside a source file, with the package ready for use."
  (apply #'contexture-demo-serve "tour" (contexture-demo--configuration))
  (setq inhibit-startup-screen t
        make-backup-files nil
        auto-save-default nil
        ;; Not where the tour is.
        display-buffer-alist '(("\\*contexture: \\(list\\|preview\\|item\\)\\*"
                                display-buffer-below-selected)))
  (menu-bar-mode -1)
  (global-set-key (kbd "C-c x") 'contexture-command-map)
  (find-file (expand-file-name "elisp/contexture.el" contexture-demo-root))
  (contexture-mode)
  (goto-char (point-min))
  (search-forward "(defun contexture-add-region")
  (beginning-of-line)
  (recenter 3)
  (set-window-dedicated-p
   (display-buffer (contexture-demo--tour-buffer)
                   '(display-buffer-in-direction (direction . right)))
   t)
  ;; A server that runs can tell the mode line what is there already.
  (contexture-request-async 'ping))

(defun contexture-demo--tour-buffer ()
  "Return the read-only buffer with the tour."
  (with-current-buffer (get-buffer-create "*contexture: tour*")
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert contexture-demo-tour-text)
      (goto-char (point-min))
      (put-text-property (point) (line-end-position) 'face 'bold)
      (while (re-search-forward "\\\\`\\([^']+\\)'" nil t)
        (replace-match (propertize (match-string 1) 'face 'help-key-binding) t t))
      (goto-char (point-min)))
    (special-mode)
    (setq truncate-partial-width-windows nil)
    (setq-local word-wrap t)
    (current-buffer)))

(provide 'demo)
;;; demo.el ends here
