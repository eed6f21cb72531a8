;;; contexture-words-tests.el --- The words that a user reads  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A user has to learn eight words: item, context, conversation, model, limit,
;; note, undo and agent.  These tests read what a user reads: the names of
;; commands, options and faces, the strings of the package, the README, and
;; the manual before its last chapter.  They find no other word for these.

;;; Code:

(require 'ert)
(require 'cl-lib)
(require 'subr-x)

(defconst contexture-words-tests--out
  (concat "\\_<\\(?:"
          (mapconcat
           #'identity
           '("managers?" "capacity" "origins?" "tiered" "quality" "phases?" "\\(?:in\\|of\\) view"
             "ledgers?" "layers?" "prun\\(?:e[sd]?\\|ings?\\)" "summari[sz]\\(?:e[sd]?\\|ing\\)"
             "checkpoints?" "roll\\(?:s\\|ed\\|ing\\)? back" "rolled .* back" "rollbacks?"
             "fr[eo]ez\\(?:es?\\|ing\\)" "fro[sz]en?" "stale" "snapshots?" "scopes?" "templates?"
             "note-takers?" "budgets?" "chats?" "dry[- ]runs?" "revisions?"
             ;; The parts of what is sent, by the names that the protocol has.
             "tool-schemas" "design-document" "type-definitions" "current-unit"
             "relevant-tests" "previous-units" "grounding")
           "\\|")
          "\\)\\_>")
  "Regexp of the words that no user reads.
They are those of the protocol, or other words for one of the eight.")

(defconst contexture-words-tests--recorded
  "\\(?:agents?\\|record\\|Claude\\|Codex\\|SpecStory\\|import\\|contexture sessions\\)"
  "Regexp of a text about what an agent recorded, which is called a session.")

(defconst contexture-words-tests--wire
  '(("contexture-conversation--told-of-others" "chat" "rollback")
    ("contexture-conversation--session-changed" "chat" "rollback")
    ("contexture-conversations--step" "rollback")
    ("contexture-conversations--change-name" "rollback")
    ("contexture--strategies" "tiered")
    ("contexture-conversation--refused" "template")
    ("contexture--secret-examples" ".template")
    ("contexture-dashboard--agents" "Session")
    ("contexture-import--places" "sessions")
    ("contexture-import--params" "sessions")
    ("contexture-defun--modifiers" "template")
    ("contexture-defun--annotation" "template"))
  "Strings that mean something else, by the definition in which they are.
They are names of the protocol, files and folders, a keyword of C++, and the
heading above what agents recorded.")

(defun contexture-words-tests--found (text)
  "Return the first word of TEXT that is out, or nil."
  (let ((case-fold-search t)
        (text (replace-regexp-in-string "[ \n]+" " " text)))
    (with-syntax-table text-mode-syntax-table
      (modify-syntax-entry ?- "_" (syntax-table))
      (cond ((string-match contexture-words-tests--out text) (match-string 0 text))
            ((and (string-match "\\_<sessions?\\_>" text)
                  (not (string-match-p contexture-words-tests--recorded text)))
             "session")))))

(defun contexture-words-tests--folder (name)
  "Return the absolute name of NAME in the project."
  (expand-file-name (concat "../../" name)
                    (file-name-directory (locate-library "contexture-words-tests.el" t))))

(defun contexture-words-tests--files ()
  "Return the files of the package, but not those of the kit for tests."
  (cl-remove-if (lambda (file) (string-match-p "\\(?:contexture\\|llm\\)-ert" file))
                (directory-files (contexture-words-tests--folder "elisp") t "\\.el\\'")))

(defun contexture-words-tests--forms (file)
  "Return the top-level forms of FILE."
  (with-temp-buffer
    (insert-file-contents file)
    (let (forms)
      (condition-case nil
          (while t (push (read (current-buffer)) forms))
        (end-of-file))
      (nreverse forms))))

(defun contexture-words-tests--name (form)
  "Return the name that FORM defines, a string, or nil."
  (let ((name (car-safe (cdr-safe form))))
    (while (consp name)
      (setq name (if (eq (car name) 'quote) (cadr name) (car name))))
    (and name (format "%s" name))))

(defun contexture-words-tests--strings (form)
  "Return all strings in FORM."
  (cond ((stringp form) (list form))
        ((vectorp form) (cl-mapcan #'contexture-words-tests--strings (append form nil)))
        ((consp form)
         (let (strings)
           (while (consp form)
             (setq strings (append strings (contexture-words-tests--strings (car form)))
                   form (cdr form)))
           (append strings (and form (contexture-words-tests--strings form)))))))

(defun contexture-words-tests--doc (form)
  "Return the docstring of FORM, a definition, or nil."
  (pcase (car-safe form)
    ((or 'defvar 'defconst 'defvar-local 'defcustom 'defface) (nth 3 form))
    ((or 'defun 'defmacro 'defsubst 'cl-defun 'cl-defgeneric 'cl-defmethod 'cl-defstruct 'defclass)
     (cl-find-if #'stringp (cddr form)))))

(defun contexture-words-tests--read-by-users-p (form)
  "Return non-nil if users read the docstring of FORM, a definition.
They do if it is a command, an option, a face or a mode."
  (pcase (car-safe form)
    ((or 'defcustom 'defface) t)
    ((or 'defun 'cl-defun)
     (and (assq 'interactive (cdddr form))
          (not (string-search "--" (contexture-words-tests--name form)))))))

(ert-deftest contexture-words-are-out-of-names ()
  (let (found)
    (dolist (file (contexture-words-tests--files))
      (dolist (form (contexture-words-tests--forms file))
        (when (or (contexture-words-tests--read-by-users-p form)
                  (memq (car-safe form)
                        '(define-minor-mode define-derived-mode transient-define-prefix
                           transient-define-infix defalias)))
          (let ((name (contexture-words-tests--name form)))
            ;; The other names that scripts use are no words for users.
            (unless (or (string-search "--" name)
                        (equal (file-name-base file) "contexture-repl"))
              (when (contexture-words-tests--found (string-replace "-" " " name))
                (push name found)))))))
    (should-not found)))

(ert-deftest contexture-words-are-out-of-what-emacs-shows ()
  (let (found)
    (dolist (file (contexture-words-tests--files))
      (dolist (form (contexture-words-tests--forms file))
        (let ((name (contexture-words-tests--name form))
              (doc (unless (contexture-words-tests--read-by-users-p form)
                     (contexture-words-tests--doc form))))
          (dolist (text (contexture-words-tests--strings form))
            (unless (or (eq text doc)
                        (member text (cdr (assoc name contexture-words-tests--wire))))
              (when-let* ((word (contexture-words-tests--found text)))
                ;; All of the list of sessions is about what agents recorded.
                (unless (and (equal word "session")
                             (string-prefix-p "contexture-sessions" name))
                  (push (list name word text) found))))))))
    (should-not (nreverse found))))

(defun contexture-words-tests--paragraphs (name &optional end)
  "Return the paragraphs of the page NAME, up to the line END if given."
  (with-temp-buffer
    (insert-file-contents (contexture-words-tests--folder name))
    (when end
      (re-search-forward end)
      (delete-region (match-beginning 0) (point-max)))
    (split-string (buffer-string) "\n\n+" t)))

(defun contexture-words-tests--on-page (paragraphs)
  "Return (WORD . PARAGRAPH) for each of PARAGRAPHS with a word that is out."
  (cl-loop for paragraph in paragraphs
           for word = (contexture-words-tests--found paragraph)
           when word collect (cons word paragraph)))

(ert-deftest contexture-words-are-out-of-the-readme ()
  (let ((paragraphs (contexture-words-tests--paragraphs "README.md")))
    (should-not (contexture-words-tests--on-page paragraphs))
    (should (< 800 (length (split-string (string-join paragraphs " "))) 1200))
    ;; Each of the eight is explained or shown there.
    (dolist (word '("**item**" "**context**" "**conversation**" "**model**" "**limit**"
                    "**notes**" "**undo**" "**agent**"))
      (should (cl-some (lambda (it) (string-search word it)) paragraphs)))))

(ert-deftest contexture-words-are-out-of-the-manual-before-its-last-chapter ()
  (should-not (contexture-words-tests--on-page
               (contexture-words-tests--paragraphs "docs/contexture.texi"
                                                   "^@node For experts"))))

(defun contexture-words-tests--flows ()
  "Return the flows in docs/comparison.md, as (FLOW KEYS COUNT OTHER-KEYS OTHER-COUNT)."
  (with-temp-buffer
    (insert-file-contents (contexture-words-tests--folder "docs/comparison.md"))
    (re-search-forward "^| flow |")
    (forward-line 2)
    (let (flows)
      (while (looking-at "^| \\(.*\\) |$")
        (push (split-string (match-string 1) " | ") flows)
        (forward-line))
      (nreverse flows))))

(defun contexture-words-tests--keys (cell)
  "Return the keys that CELL of a table spells between backquotes."
  (and (string-match "\\``\\([^`]*\\)`" cell) (append (kbd (match-string 1 cell)) nil)))

(ert-deftest contexture-words-keystrokes-are-counted-as-they-are ()
  (require 'contexture)
  (let ((flows (contexture-words-tests--flows))
        (commands '(contexture-add-defun contexture-add-region contexture-add-symbol
                    contexture-add-dwim contexture-preview contexture-send-region
                    contexture-rewrite contexture-fix-error contexture-configure-provider)))
    (should (= (length flows) (length commands)))
    (cl-loop for (_ keys count other other-count) in flows
             for command in commands
             for parsed = (contexture-words-tests--keys keys)
             do (should (equal (format "%d" (length parsed)) count))
             (should (equal (seq-take parsed 2) (append (kbd "C-c x") nil)))
             (should (eq (lookup-key contexture-command-map (vector (nth 2 parsed))) command))
             (unless (equal other-count "–")
               (should (equal (format "%d" (length (contexture-words-tests--keys other)))
                              other-count))))))

(defun contexture-words-tests--questions (form)
  "Return the calls of `completing-read' in FORM whose prompt says what empty input means."
  (let (calls)
    (while (consp form)
      (when (and (eq (car form) 'completing-read) (consp (cdr form))
                 (or (eq (car-safe (cadr form)) 'format-prompt)
                     (string-search "empty" (format "%s" (cadr form)))))
        (push form calls))
      (setq calls (append calls (contexture-words-tests--questions (car form)))
            form (cdr form)))
    calls))

;; Vertico chooses the first candidate for empty input, unless a default is given.
(ert-deftest contexture-words-a-prompt-that-names-a-default-gives-it ()
  (let ((calls (cl-mapcan (lambda (file)
                            (contexture-words-tests--questions
                             (contexture-words-tests--forms file)))
                          (contexture-words-tests--files))))
    (should (> (length calls) 20))
    (dolist (call calls)
      (ert-info ((format "%S" (cadr call)))
        (should (nth 7 call))))))

(ert-deftest contexture-words-are-found-where-they-are ()
  (should (equal (contexture-words-tests--found "Take a\ncheckpoint") "checkpoint"))
  (should (equal (contexture-words-tests--found "All Layers of it") "Layers"))
  (should (equal (contexture-words-tests--found "3 items rolled\nback") "rolled back"))
  (should (equal (contexture-words-tests--found "in this session") "session"))
  (should-not (contexture-words-tests--found "a session that an agent recorded"))
  (should-not (contexture-words-tests--found "the original players of a conversation")))

(provide 'contexture-words-tests)
;;; contexture-words-tests.el ends here
