;;; contexture-packages-real.el --- With packages that many people use  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by contexture-commands-tests.el into an Emacs of its own, where
;; these packages can be loaded.  The test of one that is missing is skipped.

;;; Code:

(require 'contexture-point-test-helper)
(require 'contexture-dashboard)
(require 'contexture-doctor)
(require 'contexture-list)
(require 'contexture-mention)
(require 'contexture-conversation)
(require 'contexture-conversations)
(require 'contexture-rpc)

(defmacro contexture-packages-real-deftest (package what &rest body)
  "Define a test of BODY that needs PACKAGE; WHAT completes its name."
  (declare (indent 2) (debug (symbolp symbolp body)))
  `(ert-deftest ,(intern (format "contexture-packages-real-%s-%s" package what)) ()
     (skip-unless (require ',package nil t))
     ,@body))

(defvar contexture-packages-real-table
  (contexture--table '("lines 2-3 of a.txt" "file b.txt") 'contexture-item
                     (lambda (name) (format "  %d characters" (length name))))
  "Table of items.")

(contexture-packages-real-deftest evil leaves-the-keys-of-lists
  (dolist (mode '(contexture-list-mode contexture-dashboard-mode contexture-explain-mode
                  contexture-conversation-transcript-mode contexture-conversation-notes-mode
                  contexture-doctor-mode contexture-info-mode))
    (with-temp-buffer
      (evil-mode 1)
      (unwind-protect
          (progn
            (funcall mode)
            (let ((map (current-local-map)))
              (dolist (key '("g" "n" "u" "x" "d" "?" "/"))
                (when-let* ((command (lookup-key map key)))
                  (unless (eq command 'undefined)
                    (should (eq (key-binding key) command)))))))
        (evil-mode -1)))))

(contexture-packages-real-deftest evil leaves-the-keys-of-texts-of-other-modes
  (contexture-test-with-server
    (evil-mode 1)
    (unwind-protect
        (save-window-excursion
          (contexture-request 'add-context '(:manager "m" :content "(car x)"))
          (contexture-preview "m")
          (should (eq evil-state 'emacs))
          (should (eq (key-binding "q") #'quit-window))
          (kill-buffer)
          (contexture-list-item--display '(:content "(car x)"))
          (with-current-buffer contexture-list--item-buffer
            (should (eq evil-state 'emacs))
            (should (eq (key-binding "q") #'View-quit))
            (kill-buffer)))
      (evil-mode -1))))

(contexture-packages-real-deftest evil writes-in-a-conversation-at-once
  (contexture-test-with-server
    (evil-mode 1)
    (unwind-protect
        (save-window-excursion
          (contexture-conversation "talk")
          (should (eq evil-state 'insert))
          (should (eq (key-binding (kbd "RET")) (lookup-key contexture-conversation-mode-map (kbd "RET"))))
          (let ((kill-buffer-query-functions nil)) (kill-buffer)))
      (evil-mode -1))))

(contexture-packages-real-deftest evil keeps-the-state-that-a-user-chose
  (with-temp-buffer
    (evil-set-initial-state 'contexture-list-mode 'motion)
    (evil-mode 1)
    (unwind-protect
        (progn (contexture-list-mode)
               (should (eq evil-state 'motion)))
      (evil-mode -1)
      (setq evil-motion-state-modes (delq 'contexture-list-mode evil-motion-state-modes)))))

(contexture-packages-real-deftest marginalia keeps-our-annotations
  (marginalia-mode 1)
  (unwind-protect
      (should (equal (contexture-packages-real-annotation "file b.txt") "  10 characters"))
    (marginalia-mode -1)))

(defun contexture-packages-real-annotation (name)
  "Return the annotation of NAME, a candidate of the table."
  (let* ((metadata (completion-metadata "" contexture-packages-real-table nil))
         (affixate (completion-metadata-get metadata 'affixation-function)))
    (if affixate (nth 2 (car (funcall affixate (list name))))
      (funcall (completion-metadata-get metadata 'annotation-function) name))))

(contexture-packages-real-deftest embark offers-actions-on-items
  (completion-metadata "" contexture-packages-real-table nil)
  (should (eq (lookup-key (embark--action-keymap 'contexture-item nil) "Z")
              #'contexture-embark-keep-copy))
  (should (eq (lookup-key (embark--action-keymap 'contexture-conversations nil) "v")
              #'contexture-embark-dashboard)))

(contexture-packages-real-deftest orderless finds-items-by-words-in-any-order
  (let ((completion-styles '(orderless)) (completion-category-defaults nil))
    (should (equal (mapcar #'substring-no-properties
                           (contexture-packages-real-completions "txt 2"))
                   '("lines 2-3 of a.txt")))))

(defun contexture-packages-real-completions (text)
  "Return the candidates of the table for TEXT."
  (let ((found (completion-all-completions
                text contexture-packages-real-table nil (length text))))
    (when found
      (setcdr (last found) nil)
      found)))

(contexture-packages-real-deftest company-capf completes-mentions
  (contexture-test-with-server
    (contexture-test-file "parser.el" "(defun parse ())")
    (let ((default-directory llm-ert-directory))
      (with-temp-buffer
        (setq default-directory llm-ert-directory)
        (contexture-mention-mode)
        (insert "see @pars")
        (llm-ert-wait-for
            (member "parser.el" (mapcar #'substring-no-properties
                                        (contexture-packages-real-company))))))))

(defun contexture-packages-real-company ()
  "Return what Company shows at point."
  (let ((prefix (company-capf 'prefix)))
    (company-capf 'candidates (if (consp prefix) (car prefix) prefix))))

(defmacro contexture-packages-real-mentioning (&rest body)
  "Run BODY at the beginning of a mention, in a project of two files."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (contexture-test-file "parser.el" "(defun parse ())")
     (contexture-test-file "printer.el" "(defun print-it ())")
     (save-window-excursion
       (with-temp-buffer
         (switch-to-buffer (current-buffer))
         (setq default-directory llm-ert-directory)
         (contexture-mention-mode)
         (insert "see @p")
         ,@body
         (should (equal (buffer-substring-no-properties (point-min) (point-max))
                        "see @printer.el"))
         (contexture-test-settle)
         (should (equal (mapcar (lambda (item) (plist-get item :content))
                                (contexture-test-items (contexture-current-context)))
                        '("(defun print-it ())\n")))))))

(contexture-packages-real-deftest corfu completes-mentions
  (contexture-packages-real-mentioning
    ;; It draws nothing in a terminal by itself.
    (cl-letf (((symbol-function 'corfu--popup-support-p) #'always)
              ((symbol-function 'corfu--popup-show) #'ignore)
              ((symbol-function 'corfu--popup-hide) #'ignore))
      (corfu-mode)
      (llm-ert-wait-for (progn (completion-at-point)
                                      (ignore-errors (corfu--exhibit))
                                      (cdr corfu--candidates)))
      (corfu-next)
      (corfu-insert))))

(contexture-packages-real-deftest consult completes-mentions
  (contexture-packages-real-mentioning
    (let ((completion-in-region-function #'consult-completion-in-region)
          (chosen nil))
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_prompt table &rest _)
                   (setq chosen (car (member "printer.el" (all-completions "" table)))))))
        (llm-ert-wait-for (progn (completion-at-point) chosen))))))

(defun contexture-packages-real--at (regexp)
  "Go to the line in which REGEXP is next in this buffer."
  (goto-char (point-min))
  (should (re-search-forward regexp nil t))
  (forward-line 0))

(defmacro contexture-packages-real-with-magit (&rest body)
  "Run BODY in Magit's status of a repository; see `contexture-point-test-with'.
It has changes, a file that is not tracked, a staged file and a stash."
  (declare (indent 0) (debug t))
  `(contexture-point-test-with
    (let ((magit-save-repository-buffers nil)
          (magit-log-section-commit-count 10)
          (transient-mark-mode t))
      (contexture-test-file "s.el" "(defun stashed ()" "  9)")
      (contexture-test-git "stash" "-q" "--include-untracked" "-m" "Put aside")
      (apply #'contexture-test-file "a.el"
             (cons ";; above" (append contexture-point-test-code '(";; end"))))
      (contexture-test-file "new.el" "(defun new ()" "  8)")
      (contexture-test-file "staged.el" "(defun staged ()" "  7)")
      (contexture-test-git "add" "staged.el")
      (magit-status-setup-buffer default-directory)
      (magit-section-show-level-4-all)
      ,@body)))

(contexture-packages-real-deftest magit means-hunks-files-and-sections
  (skip-unless (executable-find "git"))
  (contexture-packages-real-with-magit
    (contexture-packages-real--at "^\\+;; end")
    (contexture-point-test-check '("\\`the diff of a\\.el:[0-9]+-12\\'" . "(defun three")
                                 "\\`@@ \\(?:.*\n\\)*\\+;; end\n\\'")
    (contexture-packages-real--at "^modified +a\\.el")
    (contexture-point-test-check '("the diff of a\\.el" . ";; above")
                                 "\\+;; above\\(?:.*\n\\)*\\+;; end")
    ;; Both hunks, marked together.
    (contexture-packages-real--at "^@@")
    (push-mark (point) t t)
    (goto-char (point-max))
    (re-search-backward "^@@ .*@@.*\n\\(?:.*\n\\)?.*\n.*three\\|^@@ -7")
    (contexture-point-test-check '("the diff of a\\.el" . ";; above") "\\+;; above" "\\+;; end")
    (deactivate-mark)
    (contexture-packages-real--at "^Unstaged changes")
    (contexture-point-test-check '("the diff of a\\.el" . ";; above") "\\+;; above")
    (contexture-packages-real--at "^Staged changes")
    (contexture-point-test-check '("the diff of staged\\.el" . "(defun staged") "\\+(defun staged")
    (contexture-packages-real--at "^new\\.el")
    (contexture-point-test-check '("new\\.el" . "(defun new") "\\`(defun new")
    (contexture-packages-real--at "^Untracked files")
    (contexture-point-test-check '("new\\.el" . "(defun new") "\\`(defun new")
    ;; Behind all sections is nothing that could be added.
    (goto-char (point-max))
    (should-not (contexture-point-subjects))))

(contexture-packages-real-deftest magit means-commits-stashes-and-ranges
  (skip-unless (executable-find "git"))
  (contexture-packages-real-with-magit
    (contexture-packages-real--at "Call one$")
    (contexture-point-test-check "the diff of commit [0-9a-f]\\{10\\} (Call one)" "\\+  (one)")
    (contexture-packages-real--at "Put aside$")
    (contexture-point-test-check "the diff of commit .*Put aside" "\\`commit ")
    (contexture-packages-real--at "^Recent commits")
    (contexture-point-test-check "(Begin)" "Call one" "Begin")
    (let ((status (current-buffer)))
      (magit-log-setup-buffer '("HEAD") nil nil)
      (set-buffer (magit-get-mode-buffer 'magit-log-mode))
      (contexture-packages-real--at "Begin$")
      (contexture-point-test-check "(Begin)" "\\+(defun one")
      (contexture-packages-real--at "Call one$")
      (push-mark (point) t t)
      (goto-char (point-min))
      (re-search-forward "Begin$")
      (contexture-point-test-check "(Begin)" "Call one" "Begin")
      (deactivate-mark)
      (set-buffer status)
      (magit-show-commit "HEAD")
      (set-buffer (magit-get-mode-buffer 'magit-revision-mode))
      (contexture-packages-real--at "^Author")
      (contexture-point-test-check "(Call one)" "\\`commit \\(?:.*\n\\)*\\+  (one)")
      (set-buffer status)
      (magit-diff-range "HEAD~1")
      (set-buffer (magit-get-mode-buffer 'magit-diff-mode))
      (goto-char (point-max))
      (contexture-point-test-check "the diff of changes HEAD~1" "\\+  (one)")
      (contexture-packages-real--at "^\\+  (one)")
      (contexture-point-test-check '("the diff of a\\.el" . "(defun two") "\\`@@ "))))

(contexture-packages-real-deftest git-rebase means-commits
  (skip-unless (executable-find "git"))
  (contexture-point-test-with
   (let ((begin (substring (shell-command-to-string "git rev-parse HEAD~1") 0 7)))
     (contexture-test-visiting
         (contexture-test-file ".git/rebase-merge/git-rebase-todo"
                               (format "pick %s Begin" begin) "" "# Rebase")
       (git-rebase-mode)
       (goto-char (point-min))
       (contexture-point-test-check "(Begin)" "\\+(defun one")))))

(contexture-packages-real-deftest flycheck means-the-error-and-its-code
  (contexture-point-test-with
   (contexture-test-visiting (expand-file-name "a.el")
     (emacs-lisp-mode)
     (setq-local flycheck-check-syntax-automatically nil)
     (flycheck-mode 1)
     (setq-local flycheck-current-errors
                 (list (flycheck-error-new-at 7 3 'error "one is odd")))
     (flycheck-list-errors)
     (with-current-buffer flycheck-error-list-buffer
       (flycheck-error-list-refresh)
       (contexture-packages-real--at "one is odd")
       (contexture-point-test-check '("." . "(defun two")
                                    "\\`line 7: one is odd\n\\'" "\\`(defun two ()")))))

(contexture-packages-real-deftest markdown-mode means-the-section
  (contexture-point-test-with
   (contexture-test-visiting (contexture-test-file "m.md" "# A" "text" "## B" "text b" "# C")
     (markdown-mode)
     (goto-char (point-min))
     (search-forward "text b")
     (contexture-point-test-check '("m\\.md:3-4" . "## B") "\\`## B\ntext b\n\\'"))))

(provide 'contexture-packages-real)
;;; contexture-packages-real.el ends here
