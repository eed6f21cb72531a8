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
    (let ((default-directory contexture-ert-directory))
      (with-temp-buffer
        (setq default-directory contexture-ert-directory)
        (contexture-mention-mode)
        (insert "see @pars")
        (contexture-ert-wait-for
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
         (setq default-directory contexture-ert-directory)
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
      (contexture-ert-wait-for (progn (completion-at-point)
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
        (contexture-ert-wait-for (progn (completion-at-point) chosen))))))

(contexture-packages-real-deftest magit adds-what-is-at-point
  (skip-unless (executable-find "git"))
  (contexture-test-with-server
    (let ((default-directory contexture-ert-directory))
      (contexture-test-file "a.txt" "one")
      (dolist (args '(("init" "-q") ("add" "a.txt")
                      ("-c" "user.name=A" "-c" "user.email=a@b.c" "commit" "-q" "-m" "one")))
        (should (equal 0 (apply #'call-process "git" nil nil nil args))))
      (contexture-test-file "a.txt" "two")
      (save-window-excursion
        (magit-status-setup-buffer default-directory)
        (let ((buffer (current-buffer)))
          (should (search-forward "a.txt" nil t))
          (contexture-add-dwim)
          (contexture-test-settle)
          (should (cl-some (lambda (item) (string-match-p "two" (plist-get item :content)))
                           (contexture-test-items (contexture-current-context))))
          (kill-buffer buffer))))))

(provide 'contexture-packages-real)
;;; contexture-packages-real.el ends here
