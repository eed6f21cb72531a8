;;; contexture-agent-shell-tests.el --- Tests with agent-shell  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The mode sets the prefix of agent-shell's commands, and restores it.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-agents)

(defvar agent-shell-command-prefix)

(defmacro contexture-agent-shell-test-with (prefix &rest body)
  "Run BODY with PREFIX as the user's own prefix of agent-shell."
  (declare (indent 1) (debug t))
  `(let ((contexture-agent-shell--theirs nil)
         (contexture-server-command "sh")
         (contexture-server-args '("--tcp" "0" "--state" "/tmp/x")))
     (unwind-protect
         (progn (defvar agent-shell-command-prefix)
                (setq agent-shell-command-prefix ,prefix)
                ,@body)
       (setq contexture-agent-shell-mode nil)
       (makunbound 'agent-shell-command-prefix))))

(defun contexture-agent-shell-test-prefix ()
  "Return the words after the program in the prefix of a command."
  (cdr (funcall agent-shell-command-prefix (current-buffer))))

(ert-deftest contexture-agent-shell-starts-agents-through-the-proxy ()
  (contexture-agent-shell-test-with nil
    (contexture-agent-shell-mode)
    (should (equal (contexture-agent-shell-test-prefix)
                   '("acp" "--state" "/tmp/x" "--")))
    (should (file-executable-p (car (funcall agent-shell-command-prefix nil))))
    ;; Once more changes nothing.
    (contexture-agent-shell-mode)
    (contexture-agent-shell-mode -1)
    (should-not agent-shell-command-prefix)))

(ert-deftest contexture-agent-shell-keeps-the-prefix-of-the-user ()
  (dolist (theirs (list '("docker" "exec") (lambda (_) '("docker" "exec"))))
    (contexture-agent-shell-test-with theirs
      (contexture-agent-shell-mode)
      (should (equal (contexture-agent-shell-test-prefix)
                     '("acp" "--state" "/tmp/x" "--" "docker" "exec")))
      (contexture-agent-shell-mode -1)
      (should (eq agent-shell-command-prefix theirs))))
  ;; What the user sets meanwhile stays.
  (contexture-agent-shell-test-with nil
    (contexture-agent-shell-mode)
    (setq agent-shell-command-prefix '("nice"))
    (contexture-agent-shell-mode -1)
    (should (equal agent-shell-command-prefix '("nice")))))

(ert-deftest contexture-agent-shell-lets-agents-start-without-a-program ()
  (contexture-agent-shell-test-with '("nice")
    (let ((contexture-server-command "no-such-program"))
      (contexture-agent-shell-mode)
      (should (equal (funcall agent-shell-command-prefix nil) '("nice"))))))

(ert-deftest contexture-agent-shell-says-that-agent-shell-is-missing ()
  (skip-unless (not (locate-library "agent-shell")))
  (let ((said nil))
    (unwind-protect
        (progn
          (cl-letf (((symbol-function 'message)
                     (lambda (format &rest args)
                       (when format (push (apply #'format format args) said)))))
            (contexture-agent-shell-mode))
          (should (string-match-p "not installed" (string-join said " ")))
          ;; It is installed and loaded later.
          (setq agent-shell-command-prefix '("nice"))
          (run-hook-with-args 'after-load-functions "agent-shell.el")
          (should (eq agent-shell-command-prefix #'contexture-agent-shell--prefix))
          (should-not (memq #'contexture-agent-shell--loaded after-load-functions))
          (contexture-agent-shell-mode -1)
          (should (equal agent-shell-command-prefix '("nice"))))
      (contexture-agent-shell-mode -1)
      (makunbound 'agent-shell-command-prefix))))

;;; With agent-shell itself

(defconst contexture-agent-shell-test-agent
  (expand-file-name "acp-agent.el" (file-name-directory (or load-file-name buffer-file-name)))
  "File of an agent that logs what it is sent.")

(defvar agent-shell-opencode-acp-command)
(declare-function agent-shell-start "agent-shell" (&rest rest))
(declare-function agent-shell-insert "agent-shell" (&rest rest))
(declare-function agent-shell-opencode-make-agent-config "agent-shell-opencode" ())
(declare-function shell-maker-busy "shell-maker" ())

(defun contexture-agent-shell-test-load ()
  "Load agent-shell, or skip the test."
  (unless (>= emacs-major-version 29)
    (ert-skip "agent-shell needs Emacs 29.1"))
  (unless (executable-find "curl")
    (ert-skip "shell-maker needs curl"))
  (dolist (variable '("AGENT_SHELL_DIR" "ACP_EL_DIR" "SHELL_MAKER_DIR"))
    (add-to-list 'load-path
                 (or (getenv variable)
                     (ert-skip (concat variable " names no checkout")))))
  (require 'agent-shell)
  (require 'agent-shell-opencode))

(defun contexture-agent-shell-test-prompts (log)
  "Return the prompts in the file LOG, each the list of its blocks."
  (with-temp-buffer
    (when (file-exists-p log)
      (insert-file-contents log))
    (let ((messages (mapcar (lambda (line) (json-parse-string line :object-type 'plist))
                            (split-string (buffer-string) "\n" t))))
      (delq nil (mapcar (lambda (message)
                          (and (equal (plist-get message :method) "session/prompt")
                               (append (plist-get (plist-get message :params) :prompt) nil)))
                        messages)))))

(defun contexture-agent-shell-test-ask (shell text log)
  "Send TEXT as a prompt from the buffer SHELL; return it as LOG has it."
  (let ((before (length (contexture-agent-shell-test-prompts log))))
    (agent-shell-insert :text text :submit t :shell-buffer shell)
    (llm-ert-wait-for
        (and (> (length (contexture-agent-shell-test-prompts log)) before)
             (not (with-current-buffer shell (shell-maker-busy)))))
    (car (last (contexture-agent-shell-test-prompts log)))))

(ert-deftest contexture-agent-shell-real-gives-agents-what-is-marked ()
  (contexture-test-with-state
    (let ((user-emacs-directory (expand-file-name "emacs/")))
      (contexture-agent-shell-test-load))
    (make-directory ".git")
    (contexture-test-file "port.txt" "The port is 8080.")
    (let* ((log (expand-file-name "agent.log"))
           (agent-shell-opencode-acp-command
            (list (expand-file-name invocation-name invocation-directory) "-Q" "--batch"
                  "-l" contexture-agent-shell-test-agent log))
           (layers (contexture-request 'open-layers (list :directory default-directory)))
           (manager (plist-get (nth 1 (append (plist-get layers :layers) nil)) :manager))
           shell)
      (unwind-protect
          (progn
            (contexture-agent-shell-mode)
            (contexture-request 'add-file (list :path (expand-file-name "port.txt")
                                                :manager manager :live t))
            (setq shell (agent-shell-start :config (agent-shell-opencode-make-agent-config)))
            (let ((first (contexture-agent-shell-test-ask shell "One." log)))
              (should (equal (plist-get (car first) :text) "One."))
              (should (string-search "8080" (format "%S" first))))
            (should (equal (length (contexture-agent-shell-test-ask shell "Two." log)) 1))
            (contexture-test-file "port.txt" "The port is 9090.")
            (should (string-search "9090" (format "%S" (contexture-agent-shell-test-ask
                                                        shell "Three." log))))
            (should (string-search "Understood, all of it."
                                   (with-current-buffer shell (buffer-string)))))
        (contexture-agent-shell-mode -1)
        (when (buffer-live-p shell)
          (let ((kill-buffer-query-functions nil))
            (kill-buffer shell)))))))

(provide 'contexture-agent-shell-tests)
;;; contexture-agent-shell-tests.el ends here
