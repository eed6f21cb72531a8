;;; contexture-packages-real.el --- With packages that many people use  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by contexture-commands-tests.el into an Emacs of its own, where
;; these packages can be loaded.  The test of one that is missing is skipped.

;;; Code:

(require 'contexture-test-helper)
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

(defun contexture-packages-real--meant (regexp)
  "Return the texts of the subjects where REGEXP is next in this buffer."
  (goto-char (point-min))
  (should (re-search-forward regexp nil t))
  (forward-line 0)
  (let ((found 'none))
    (contexture-point-with
     (contexture-point-subjects)
     (lambda (subjects)
       (setq found (mapcar (lambda (it) (plist-get (plist-get it :params) :content)) subjects))))
    (llm-ert-wait-for (not (eq found 'none)))
    found))

(contexture-packages-real-deftest magit adds-what-is-at-point
  (skip-unless (executable-find "git"))
  (contexture-test-with-server
    (let ((default-directory llm-ert-directory)
          (magit-save-repository-buffers nil)
          (git (lambda (&rest args)
                 (should (equal 0 (apply #'call-process "git" nil nil nil
                                         "-c" "user.name=A" "-c" "user.email=a@b.c" args))))))
      (apply #'contexture-test-file "a.txt" (mapcar #'number-to-string (number-sequence 1 30)))
      (funcall git "init" "-q")
      (funcall git "add" "a.txt")
      (funcall git "commit" "-q" "-m" "Begin here")
      (apply #'contexture-test-file "a.txt"
             `("above" ,@(mapcar #'number-to-string (number-sequence 1 30)) "below"))
      (save-window-excursion
        (magit-status-setup-buffer default-directory)
        (let ((buffer (current-buffer)))
          (should (equal (length (contexture-packages-real--meant "a\\.txt$")) 1))
          (magit-section-show (magit-current-section))
          (pcase-let ((`(,file) (contexture-packages-real--meant "a\\.txt$"))
                      (`(,hunk) (contexture-packages-real--meant "^\\+below"))
                      (`(,commit) (contexture-packages-real--meant "Begin here")))
            (should (string-match-p "\\+above\\(?:.*\n\\)*\\+below" file))
            (should (string-match-p "\\`@@ \\(?:.*\n\\)*\\+below\n\\'" hunk))
            (should-not (string-search "above" hunk))
            (should (string-match-p "\\`commit \\(?:.*\n\\)*    Begin here\\(?:.*\n\\)*\\+30" commit)))
          (goto-char (point-min))
          (re-search-forward "^\\+below")
          (contexture-add-dwim)
          (contexture-test-settle)
          (let ((item (contexture-test-only-item (contexture-current-context))))
            (should (string-match-p "\\`the diff of a\\.txt:[0-9]+-32\\'"
                                    (contexture--description (plist-get item :metadata)))))
          (magit-show-commit "HEAD")
          (should (string-match-p "Begin here" (car (contexture-packages-real--meant "Author"))))
          (magit-diff-range "HEAD~0")
          (should (string-match-p "\\+below" (car (contexture-packages-real--meant "."))))
          (kill-buffer buffer))))))

(contexture-packages-real-deftest flycheck adds-the-error-and-its-code
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.el" "(defun a ()" "  (one))" "(defun b ()" "  2)")
      (emacs-lisp-mode)
      (setq-local flycheck-check-syntax-automatically nil)
      (flycheck-mode 1)
      (setq-local flycheck-current-errors
                  (list (flycheck-error-new-at 2 3 'error "one is odd")))
      (save-window-excursion
        (flycheck-list-errors)
        (with-current-buffer flycheck-error-list-buffer
          (flycheck-error-list-refresh)
          (should (equal (contexture-packages-real--meant "one is odd")
                         '("line 2: one is odd\n" "(defun a ()\n  (one))\n"))))))))

(provide 'contexture-packages-real)
;;; contexture-packages-real.el ends here
