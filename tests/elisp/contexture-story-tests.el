;;; contexture-story-tests.el --- A day of a new user  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; One story, in which each step is what a new user does: mark in several
;; files, edit without saving, ask, look, save, switch the branch, rename a
;; file, restart Emacs and server, open another project with files of the
;; same names.  It is played once for each way of asking: in our own
;; conversation, with gptel (whose folders GPTEL_DIR, COMPAT_DIR and
;; TRANSIENT_DIR name), and in the REPLs of SLIME (Debian's) and SLY (which
;; SLY_DIR names).  The model is an HTTP server in this Emacs.  After each
;; step, what it received is compared with what the buffers or the files
;; have.  The question comes first, so that no earlier call has told the
;; server what was typed.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-conversation-test-helper)
(require 'contexture-list)
(require 'contexture-sources)
(require 'contexture-conversation)
(require 'contexture)
(require 'contexture-gptel)
(require 'contexture-lisp)

(defvar gptel-backend)
(defvar gptel-mode)
(defvar gptel-model)
(defvar gptel-stream)
(defvar gptel-use-curl)
(defvar slime-repl-history-file)
(defvar sly-mrepl-history-file-name)

;;;; The model

(defmacro contexture-story-test-with-model (&rest body)
  "Run BODY with a server that keeps its state and asks a model in this Emacs."
  (declare (indent 0) (debug t))
  `(llm-ert-with-model (lambda (_) "Understood.")
     (contexture-test-with-state
       (contexture-conversation-test--afresh
        (lambda ()
          (let ((contexture-add-to 'project)
                (contexture--told-elsewhere nil)
                (contexture--layers nil)
                (contexture-providers nil))
            (setq contexture-server-args
                  (append contexture-server-args
                          (list "--config" (contexture-story-test-config))))
            ,@body))))))

(defun contexture-story-test-config ()
  "Write a configuration with the model; return the file's name."
  (llm-ert-write-file
   "config.toml"
   (format "[[providers]]\nname = \"play\"\nkind = \"openai\"\nmodel = \"played\"\n\
base-url = \"%s/v1\"\n"
           (llm-ert-url))))

;;;; Ways of asking

(defvar contexture-story-test-way 'conversation
  "Way of asking: `conversation', `gptel', `slime' or `sly'.")

(defun contexture-story-test-ask (buffer)
  "Ask as one does from BUFFER; return the text that the model received."
  (with-current-buffer buffer
    (save-window-excursion
      (let ((before (length (llm-ert-shown))))
        (pcase contexture-story-test-way
          ('conversation (contexture-story-test-ask-in-conversation))
          ('gptel (contexture-story-test-ask-with-gptel))
          (_ (contexture-story-test-ask-in-repl)))
        (pcase-let ((`(,shown . ,others) (nthcdr before (llm-ert-shown))))
          (should (and shown (null others)))
          (mapconcat (lambda (message) (format "%s" (plist-get message :content)))
                     (plist-get (plist-get shown :body) :messages)
                     "\n"))))))

(defun contexture-story-test-ask-in-conversation ()
  "Ask in the conversation of this buffer's project."
  (contexture-conversation (concat "talk about " (file-name-nondirectory
                                                  (directory-file-name default-directory))))
  (set-buffer (window-buffer))
  (llm-ert-wait-for contexture-conversation--stats)
  (contexture-conversation-test-send "What is this?"))

(defun contexture-story-test-load (&rest variables)
  "Add the folders that the environment's VARIABLES name to the `load-path'.
Skip the test if the first is not set."
  (let ((folders (delq nil (mapcar #'getenv variables))))
    (unless (getenv (car variables))
      (ert-skip (concat (car variables) " is not set")))
    (setq load-path (append (mapcar #'expand-file-name folders) load-path))))

(defun contexture-story-test-ask-with-gptel ()
  "Ask in the chat of gptel that belongs to this buffer's project."
  (set-buffer (get-buffer-create (format "*gptel in %s*" default-directory)))
  (unless (bound-and-true-p gptel-mode)
    (text-mode)
    (funcall 'gptel-mode 1))
  (setq-local gptel-use-curl (and (executable-find "curl") t)
              gptel-stream nil
              gptel-model 'played
              gptel-backend (funcall 'gptel-make-openai "played"
                                     :protocol "http" :models '(played) :key "none"
                                     :host (llm-ert-host)))
  (let* ((answered nil)
         (note (lambda (&rest _) (setq answered t))))
    (add-hook 'gptel-post-response-functions note nil t)
    (goto-char (point-max))
    (insert "What is this?")
    (funcall 'gptel-send)
    (llm-ert-wait-for answered)
    (remove-hook 'gptel-post-response-functions note t)))

(defvar contexture-story-test-server nil
  "Server that was started in a terminal, or nil.")

(defvar contexture-story-test-repls nil
  "Alist from folders to the connections of the REPLs that belong to them.")

(defun contexture-story-test-client ()
  "Return the Lisp client by which questions are asked."
  (symbol-value (intern (format "contexture-%s--client" contexture-story-test-way))))

(defun contexture-story-test-serve (&rest args)
  "Start a server, with ARGS, to which REPLs can connect, as in a terminal."
  (setq contexture-story-test-repls nil
        contexture-story-test-server
        (make-process
         :name "terminal" :buffer (generate-new-buffer " terminal") :noquery t
         :command `(,contexture-test-binary ,@contexture-server-args
                    "serve" "--tcp" "127.0.0.1:0" ,@args)
         :stderr (make-pipe-process :name "terminal-log" :noquery t
                                    :filter #'ignore :sentinel #'ignore)))
  (llm-ert-wait-for (contexture-story-test-server-port)))

(defun contexture-story-test-server-port ()
  "Return the port that the server in a terminal has printed, or nil."
  (with-current-buffer (process-buffer contexture-story-test-server)
    (goto-char (point-min))
    (and (looking-at "\\([0-9]+\\)\n") (string-to-number (match-string 1)))))

(defun contexture-story-test-repl ()
  "Return the REPL that belongs to this buffer's folder."
  (let ((client (contexture-story-test-client))
        (folder default-directory))
    (unless (assoc folder contexture-story-test-repls)
      (push (cons folder
                  (funcall (intern (format "%s-connect" contexture-story-test-way))
                           "127.0.0.1" (contexture-story-test-server-port)))
            contexture-story-test-repls))
    (cl-flet ((repl ()
                (cl-find-if
                 (lambda (buffer)
                   (with-current-buffer buffer
                     (and contexture-lisp--agent-mode
                          (equal default-directory folder)
                          (contexture-lisp--agent-p client)
                          (contexture-lisp--prompt-before client (point-max)))))
                 (buffer-list))))
      (llm-ert-wait-for (repl)))))

(defun contexture-story-test-ask-in-repl ()
  "Ask in the REPL that belongs to this buffer's folder."
  (set-buffer (contexture-story-test-repl))
  (let ((client (contexture-story-test-client))
        (before (point-max)))
    (goto-char (point-max))
    (insert-and-inherit "What is this?") ; as keys do
    (funcall (if (eq contexture-story-test-way 'slime) 'slime-repl-return
               'sly-mrepl-return))
    (llm-ert-wait-for
        (> (or (contexture-lisp--prompt-before client (point-max)) 0) before))))

;;;; Steps

(defun contexture-story-test-git (root &rest args)
  "Run Git with ARGS in ROOT."
  (let ((default-directory root))
    (with-temp-buffer
      (unless (eql 0 (apply #'call-process "git" nil t nil
                            "-c" "user.name=a" "-c" "user.email=a@b"
                            "-c" "init.defaultBranch=main" args))
        (ert-fail (buffer-string))))))

(defun contexture-story-test-project (name)
  "Make a project NAME under Git, with three files; return its root."
  (let ((root (concat llm-ert-directory name "/")))
    (make-directory root)
    (pcase-dolist (`(,file . ,text)
                   `(("area.el" . ,(format "(defun area-of (r)\n  \"Area in %s.\"\n\
  (* pi r r))\n\n(defun other ()\n  'untouched)\n" name))
                     ("notes.txt" . ,(format "first line\nsecond line of %s\nthird line\n"
                                             name))
                     ("units.el" . ,(format "(defvar unit-scale 10\n  \"Scale in %s.\")\n"
                                            name))))
      (with-temp-file (concat root file) (insert text)))
    (contexture-story-test-git root "init" "-q")
    (contexture-story-test-git root "add" ".")
    (contexture-story-test-git root "commit" "-q" "-m" "first")
    root))

(defun contexture-story-test-replace (buffer from to)
  "Replace FROM by TO in BUFFER, as a user types it, without saving."
  (with-current-buffer buffer
    (save-excursion
      (goto-char (point-min))
      (search-forward from)
      (delete-region (match-beginning 0) (match-end 0))
      (insert to))))

(defun contexture-story-test-preview (buffer)
  "Return the text of the preview of BUFFER's context."
  (with-current-buffer buffer
    (save-window-excursion
      (call-interactively #'contexture-preview)
      (contexture-test-settle)
      (with-current-buffer contexture-preview-buffer
        (prog1 (buffer-substring-no-properties (point-min) (point-max))
          (kill-buffer))))))

(defun contexture-story-test-check (buffer present &optional absent)
  "Check what the preview of BUFFER shows and what the model receives.
Each of the texts PRESENT is there once, and none of ABSENT."
  (dolist (seen (list (contexture-story-test-ask buffer)
                      (contexture-story-test-preview buffer)))
    (dolist (text present)
      (unless (= 1 (cl-count-if #'identity (contexture-story-test-places text seen)))
        (ert-fail (list text :not-once-in seen))))
    (dolist (text absent)
      (when (string-search text seen)
        (ert-fail (list text :still-in seen))))))

(defun contexture-story-test-places (text seen)
  "Return the places of TEXT in SEEN."
  (let ((start 0) places)
    (while (setq start (string-search text seen start))
      (push start places)
      (cl-incf start))
    places))

(defun contexture-story-test-quit ()
  "Leave the server and end what was started for REPLs."
  (contexture-disconnect)
  (when contexture-story-test-server
    (delete-process contexture-story-test-server)
    ;; A client cannot take that a REPL is killed while its connection closes.
    (llm-ert-wait-for
        (null (contexture-lisp--ask (contexture-story-test-client) 'connections)))
    (kill-buffer (process-buffer contexture-story-test-server))
    (setq contexture-story-test-server nil)))

(defun contexture-story-test-play (way &optional begin)
  "Play the story with WAY of asking; BEGIN is called when a day begins."
  (unless (executable-find "git")
    (ert-skip "There is no git"))
  (contexture-story-test-with-model
    (let* ((contexture-story-test-way way)
           (begin (or begin #'ignore))
           (_ (funcall begin))
           (root (contexture-story-test-project "one"))
           (open (lambda (file) (find-file-noselect (concat root file))))
           (area (funcall open "area.el"))
           (notes (funcall open "notes.txt"))
           (units (funcall open "units.el")))
      ;; Mark a definition, a region of another file and a symbol.
      (with-current-buffer area
        (goto-char (point-min))
        (search-forward "pi r")
        (contexture-test-message "^Added " (contexture-add-defun)))
      (with-current-buffer notes
        (goto-char (point-min))
        (forward-line 1)
        (contexture-test-message "^Added "
          (contexture-add-region (point) (line-beginning-position 2))))
      (with-current-buffer units
        (contexture-test-message "^Added "
          (contexture-add-region (point-min) (point-max))))
      (contexture-story-test-check
       area '("(* pi r r)" "second line of one" "unit-scale 10")
       '("untouched" "first line" "third line"))
      ;; Edit all three, and do not save.
      (contexture-story-test-replace area "(* pi r r)" "(* float-pi r r)")
      (contexture-story-test-replace notes "second line of one" "changed line of one")
      (contexture-story-test-replace notes "first line" "zeroth line\nfirst line")
      (contexture-story-test-replace units "unit-scale 10" "unit-scale 1000")
      (contexture-story-test-check
       notes '("(* float-pi r r)" "changed line of one" "unit-scale 1000")
       '("(* pi r r)" "second line" "unit-scale 10\n" "untouched" "zeroth" "third"))
      ;; Save; another program edits a file; the branch is switched.
      (dolist (buffer (list area notes units))
        (with-current-buffer buffer (save-buffer)))
      (contexture-story-test-git root "commit" "-q" "-a" "-m" "second")
      (contexture-story-test-git root "checkout" "-q" "-b" "work")
      (with-temp-file (concat root "units.el")
        (insert ";; A new head.\n(defvar unit-scale 5\n  \"Scale in one.\")\n"))
      (contexture-story-test-git root "commit" "-q" "-a" "-m" "third")
      (with-current-buffer units (revert-buffer t t))
      (contexture-story-test-check
       area '("(* float-pi r r)" "changed line of one" "unit-scale 5") '("unit-scale 1000"))
      (contexture-story-test-git root "checkout" "-q" "main")
      (with-current-buffer units (revert-buffer t t))
      (contexture-story-test-check
       area '("(* float-pi r r)" "changed line of one" "unit-scale 1000") '("unit-scale 5"))
      ;; A file is renamed.
      (kill-buffer notes)
      (contexture-story-test-git root "mv" "notes.txt" "remarks.txt")
      (contexture-story-test-git root "commit" "-q" "-m" "fourth")
      (contexture-story-test-check
       area '("(* float-pi r r)" "changed line of one" "unit-scale 1000" "remarks.txt")
       '("notes.txt"))
      ;; Quit and begin again: other buffers, another server.
      (contexture-story-test-quit)
      (dolist (buffer (list area units)) (kill-buffer buffer))
      (funcall begin)
      (with-temp-file (concat root "area.el")
        (insert ";; Moved.\n\n(defun area-of (r)\n  \"Area.\"\n  (* 3 r r))\n\n\
(defun other ()\n  'untouched)\n"))
      (setq area (funcall open "area.el"))
      (contexture-story-test-check
       area '("(* 3 r r)" "changed line of one" "unit-scale 1000") '("float-pi" "untouched"))
      ;; Another project has files of the same names.
      (let* ((root (contexture-story-test-project "two"))
             (other (find-file-noselect (concat root "area.el"))))
        (with-current-buffer other
          (goto-char (point-min))
          (search-forward "'untouched")
          (contexture-test-message "^Added " (contexture-add-defun)))
        (contexture-story-test-check
         other '("'untouched") '("area-of" "changed line" "unit-scale"))
        (contexture-story-test-check
         area '("(* 3 r r)" "changed line of one" "unit-scale 1000") '("untouched")))
      (contexture-story-test-quit))))

(ert-deftest contexture-story-of-a-new-user ()
  (contexture-story-test-play 'conversation))

(ert-deftest contexture-story-through-gptel ()
  (contexture-story-test-load "GPTEL_DIR" "COMPAT_DIR" "TRANSIENT_DIR")
  (require 'gptel)
  (require 'gptel-openai)
  (unwind-protect
      (progn
        (contexture-gptel-mode 1)
        (contexture-story-test-play 'gptel))
    (contexture-gptel-mode -1)))

(ert-deftest contexture-story-through-slime ()
  (let ((folder (or (car (file-expand-wildcards
                          "/usr/share/emacs/site-lisp/elpa/slime-[0-9]*"))
                    (ert-skip "There is no SLIME (Debian: slime)"))))
    (setq load-path (cons folder (cons (expand-file-name "contrib" folder) load-path)))
    (contexture-story-test-play-in-repl 'slime '(slime-repl) "--swank-version")))

(ert-deftest contexture-story-through-sly ()
  (contexture-story-test-load "SLY_DIR")
  (push (expand-file-name "contrib" (getenv "SLY_DIR")) load-path)
  (contexture-story-test-play-in-repl 'sly '(sly-mrepl) "--slynk-version"))

(defun contexture-story-test-play-in-repl (client contribs option)
  "Play the story in the REPL of CLIENT, a symbol, set up with CONTRIBS.
OPTION is that of the server which takes the client's version."
  (require client)
  (let* ((slime-repl-history-file nil)
         ;; Emacs 30 cannot read the null device.
         (sly-mrepl-history-file-name (make-temp-file "history"))
         (kill-buffer-query-functions nil)
         (mode (intern (format "contexture-%s-mode" client)))
         (version (symbol-value (intern (format "%s-protocol-version" client)))))
    (funcall (intern (format "%s-setup" client)) contribs)
    (unwind-protect
        (progn
          (funcall mode 1)
          (contexture-story-test-play
           client (lambda ()
                    (apply #'contexture-story-test-serve
                           (and (stringp version) (list option version))))))
      (funcall mode -1)
      (delete-file sly-mrepl-history-file-name)
      (when contexture-story-test-server
        (delete-process contexture-story-test-server))
      (setq contexture-story-test-server nil))))

(provide 'contexture-story-tests)
;;; contexture-story-tests.el ends here
