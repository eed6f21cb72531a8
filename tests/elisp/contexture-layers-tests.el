;;; contexture-layers-tests.el --- What several buffers send together  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The layers of buffers, against the real server: what is marked in several
;; files reaches one question, and projects with files of the same names stay
;; apart.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-list)
(require 'contexture-marks)
(require 'contexture-conversation)
(require 'contexture)
(require 'contexture-gptel)

(defvar gptel-model)
(defvar gptel-prompt-transform-functions)
(defvar gptel-system-prompt)
(defvar gptel-use-context)

(defmacro contexture-layers-test (&rest body)
  "Run BODY with a server that keeps its state, and with layers for projects."
  (declare (indent 0) (debug t))
  `(contexture-test-with-state
     (let ((contexture-add-to 'project)
           (contexture--told-elsewhere nil))
       ,@body)))

(defun contexture-layers-test-project (name &rest files)
  "Make a project called NAME with FILES, pairs of name and text; return it."
  (let ((root (concat llm-ert-directory name "/")))
    (make-directory (concat root ".git") t)
    (pcase-dolist (`(,file . ,text) files root)
      (with-temp-file (concat root file) (insert text)))))

(defun contexture-layers-test-mark (&optional beg end)
  "Mark the text from BEG to END of this buffer; wait until it is added."
  (contexture-test-message "^Added "
    (contexture-add-region (or beg (point-min)) (or end (point-max)))))

(defun contexture-layers-test-contents (&optional context)
  "Return the texts of CONTEXT, by default of all that this buffer sends."
  (mapcar (lambda (item) (plist-get item :content))
          (contexture-request
           'list-items
           (contexture--context-params (or context (contexture-current-context))))))

(defun contexture-layers-test-kinds ()
  "Return the layers of this buffer, by what their items belong to."
  (mapcar (lambda (layer) (plist-get layer :layer)) (contexture--layers)))

(defmacro contexture-layers-test-visiting (root file &rest body)
  "Run BODY in a buffer that visits FILE in ROOT."
  (declare (indent 2) (debug t))
  `(contexture-test-visiting (concat ,root ,file) ,@body))

;;;; One question, several files

(ert-deftest contexture-layers-send-what-is-marked-in-all-files ()
  (contexture-layers-test
    (let ((root (contexture-layers-test-project
                 "app" '("one.el" . "(one)\n") '("two.el" . "(two)\n"))))
      (contexture-layers-test-visiting root "one.el"
        (should (string-match-p "^Added one.el.* to project app (1 item"
                                (contexture-layers-test-mark)))
        (should (equal (contexture-layers-test-kinds) '(:everywhere :project :file))))
      (contexture-layers-test-visiting root "two.el"
        (contexture-test-message "^Added " (contexture-add-buffer))
        (let ((contexture-add-to 'buffer))
          (should (string-match-p " to file two.el (1 item"
                                  (contexture-test-message "^Added "
                                    (contexture-add-buffer)))))
        (let ((contexture-add-to 'shared))
          (contexture-request 'add-item (list :manager (contexture-adding-context)
                                              :content "of all")))
        ;; The buffer's text is in two layers, and is sent once.
        (should (equal (contexture-layers-test-contents) '("of all" "(one)\n" "(two)\n")))
        (contexture-copy (contexture--read-manager))
        (should (string-match-p "(one)\\(.\\|\n\\)*(two)" (current-kill 0)))
        (save-window-excursion
          (call-interactively #'contexture-preview)
          (with-current-buffer contexture-preview-buffer
            (should (string-match-p "of all\\(.\\|\n\\)*(one)\\(.\\|\n\\)*(two)"
                                    (buffer-string)))
            (should (string-match-p "^ Project app and file two.el, " header-line-format)))))
      ;; Another buffer of the project sees the project's items alone.
      (contexture-layers-test-visiting root "one.el"
        (should (equal (contexture-layers-test-contents)
                       '("of all" "(one)\n" "(two)\n")))))))

(ert-deftest contexture-layers-reach-gptel ()
  (contexture-layers-test
    (let* ((root (contexture-layers-test-project
                  "app" '("one.el" . "(one)\n") '("two.el" . "(two)\n")))
           (gptel-model 'some-model)
           (gptel-prompt-transform-functions (list #'ignore))
           (gptel-system-prompt "Be brief.")
           (gptel-use-context 'system)
           (contexture-gptel-timeout llm-ert-timeout)
           (prompt (generate-new-buffer " *prompt*"))
           done)
      (dolist (file '("one.el" "two.el"))
        (contexture-layers-test-visiting root file (contexture-layers-test-mark)))
      (with-current-buffer prompt
        (insert "What is this?")
        (setq-local gptel-system-prompt gptel-system-prompt
                    gptel-use-context gptel-use-context))
      (cl-letf (((symbol-function 'gptel-fsm-info) #'identity)
                ((symbol-function 'gptel-prompt-prefix-string) (lambda () "### ")))
        ;; A chat buffer that visits no file, in the project.
        (with-temp-buffer
          (setq default-directory root)
          (contexture-gptel--transform (lambda () (setq done t))
                                       (list :data prompt :buffer (current-buffer)))
          (llm-ert-wait-for done)))
      (with-current-buffer prompt
        (should (string-match-p "(one)\\(.\\|\n\\)*(two)" gptel-system-prompt)))
      (kill-buffer prompt))))

(ert-deftest contexture-layers-are-those-of-the-conversation ()
  (contexture-layers-test
    (let ((root (contexture-layers-test-project
                 "app" '("one.el" . "(one)\n") '("two.el" . "(two)\n")))
          (contexture-conversation--recent nil))
      (dolist (file '("one.el" "two.el"))
        (contexture-layers-test-visiting root file (contexture-layers-test-mark)))
      (contexture-layers-test-visiting root "one.el"
        (save-window-excursion
          (contexture-conversation "talk")
          (unwind-protect
              (let ((session (contexture-request 'open-session '(:name "talk"))))
                (should (equal (plist-get session :managers) contexture-context))
                (should (equal (plist-get session :manager) (car (last contexture-context))))
                (should (equal (contexture-layers-test-contents) '("(one)\n" "(two)\n")))
                ;; What is added goes to the project, or stays here.
                (should (equal (contexture--label (contexture-adding-context))
                               "project app"))
                (let ((contexture-add-to 'buffer))
                  (should (equal (contexture-adding-context)
                                 (plist-get session :manager)))
                  (should (equal (contexture--label (contexture-adding-context))
                                 "conversation talk")))
                (contexture-request 'add-item (list :manager (plist-get session :manager)
                                                    :content "only here"))
                (let ((window (contexture-request 'build-window
                                                  '(:session "talk" :query "x"))))
                  (should (string-match-p
                           "(one)\\(.\\|\n\\)*(two)\\(.\\|\n\\)*only here"
                           (mapconcat (lambda (part) (plist-get part :content))
                                      (plist-get window :parts) "")))))
            (kill-buffer (current-buffer))))
        (should (equal (contexture-layers-test-contents) '("(one)\n" "(two)\n")))))))

;;;; Apart

(ert-deftest contexture-layers-keep-files-of-one-name-apart ()
  (contexture-layers-test
    (let ((one (contexture-layers-test-project "one" '("NEWS" . "news of one\n")))
          (two (contexture-layers-test-project "two" '("NEWS" . "news of two\n"))))
      (contexture-layers-test-visiting one "NEWS"
        (contexture-layers-test-mark)
        (let ((first (current-buffer)))
          (contexture-layers-test-visiting two "NEWS"
            (should (string-match-p "NEWS<two>" (buffer-name)))
            (should-not (contexture-layers-test-contents))
            (contexture-layers-test-mark)
            (should (equal (contexture-layers-test-contents) '("news of two\n"))))
          (with-current-buffer first
            (should (equal (contexture-layers-test-contents) '("news of one\n"))))))
      ;; After a restart, and in a buffer of another name.
      (contexture-disconnect)
      (contexture-layers-test-visiting two "NEWS"
        (should (equal (contexture-layers-test-contents) '("news of two\n")))
        (rename-buffer "other name")
        (setq contexture--layers nil)
        (should (equal (contexture-layers-test-contents) '("news of two\n")))))))

(ert-deftest contexture-layers-of-buffers-without-files-have-numbers ()
  (contexture-layers-test
    (let ((contexture-add-to 'buffer))
      (with-temp-buffer
        (rename-buffer "notes" t)
        (insert "a")
        (let ((name (contexture-adding-context)))
          (should (string-prefix-p "buffer:notes#" name))
          (should (equal (contexture--label name) "buffer notes"))
          (contexture-layers-test-mark)
          (rename-buffer "renamed" t)
          (should (equal (contexture-adding-context) name))
          (should (equal (contexture-layers-test-kinds)
                         '(:everywhere :project :buffer)))))
      (with-temp-buffer
        (rename-buffer "notes" t)
        (should-not (contexture-layers-test-contents (contexture-adding-context)))))))

(ert-deftest contexture-layers-of-a-buffer-go-along-to-its-file ()
  (contexture-layers-test
    (let ((contexture-add-to 'buffer)
          (file (expand-file-name "saved.txt" llm-ert-directory)))
      (with-temp-buffer
        (rename-buffer "notes" t)
        (setq default-directory llm-ert-directory)
        (insert "a")
        (contexture-layers-test-mark)
        (contexture-test-message "moved 1 item of buffer notes to the file"
          (write-file file))
        (should (equal (contexture-layers-test-contents (contexture-adding-context)) '("a")))
        (should (memq :file (contexture-layers-test-kinds)))
        (should-not (memq :buffer (contexture-layers-test-kinds)))))
    ;; The next Emacs finds it with the file.
    (contexture-test-visiting (expand-file-name "saved.txt" llm-ert-directory)
      (should (member "a" (contexture-layers-test-contents))))))

(ert-deftest contexture-layers-outside-of-projects-are-those-of-the-folder ()
  (contexture-layers-test
    (contexture-test-visiting (contexture-test-file "a.txt" "one")
      (should (string-prefix-p "project:" (contexture-adding-context)))
      (should (string-match-p "^Added .* to project " (contexture-layers-test-mark))))
    (contexture-test-visiting (contexture-test-file "b.txt" "two")
      (should (equal (contexture-layers-test-contents) '("one\n"))))))

(ert-deftest contexture-layers-of-projects-on-other-machines-are-those-of-projects ()
  (contexture-layers-test
    (contexture-test-with-mock-method
      (let ((root (file-name-as-directory (expand-file-name "far" llm-ert-directory))))
        (make-directory (concat root ".git") t)
        (make-directory (concat root "src"))
        (write-region "one\n" nil (concat root "src/a.txt") nil 'quiet)
        (contexture-test-visiting (concat "/mock::" root "src/a.txt")
          (should (string-match-p "\\`project:/mock:.*far/\\'" (contexture-adding-context)))
          (should (string-match-p "^Added src/a.txt:1 to project far "
                                  (contexture-layers-test-mark))))))))

(ert-deftest contexture-layers-of-other-machines-need-no-search ()
  (contexture-layers-test
    (cl-letf (((symbol-function 'project-current)
               (lambda (&rest _) (ert-fail "searched"))))
      (with-temp-buffer
        (setq default-directory "/ssh:nobody@nowhere.invalid:/srv/app/")
        (should (equal (contexture-adding-context)
                       "project:/ssh:nobody@nowhere.invalid:/srv/app/"))))))

;;;; Choosing

(ert-deftest contexture-layers-are-chosen-with-a-prefix-argument ()
  (contexture-layers-test
    (let ((root (contexture-layers-test-project "app" '("one.el" . "(one)\n"))))
      (contexture-layers-test-visiting root "one.el"
        (cl-letf (((symbol-function 'completing-read)
                   (lambda (prompt names &rest _)
                     (should (equal prompt "Add to (default project app): "))
                     (should (equal names '("everywhere" "project app" "file one.el")))
                     "file one.el")))
          (let ((current-prefix-arg '(4))
                (this-command 'contexture-add-buffer))
            (should (string-match-p " to file one.el "
                                    (contexture-test-message "^Added "
                                      (contexture-add-buffer))))))
        (should (string-match-p " to project app "
                                (contexture-test-message "^Added "
                                  (contexture-add-buffer))))
        (let ((contexture-add-to 'shared))
          (should (equal (contexture-adding-context) "*shared*")))
        (let ((contexture-add-to (lambda () "mine")))
          (should (equal (contexture-adding-context) "mine"))
          (should (equal (contexture-current-context) "mine")))
        (contexture-switch "special")
        (should (equal (contexture-current-context) "special"))
        (contexture-switch nil)
        (should (consp (contexture-current-context)))))))

(ert-deftest contexture-layers-are-chosen-with-two-prefix-arguments-elsewhere ()
  (contexture-layers-test
    (let ((root (contexture-layers-test-project "app" '("one.el" . "(one)\n")))
          (kill-ring '("newest" "oldest")))
      (contexture-layers-test-visiting root "one.el"
        (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "file one.el"))
                  ((symbol-function 'read-from-kill-ring) (lambda (&rest _) "oldest")))
          (pcase-dolist (`(,prefix ,layer ,text) '((nil "project app" "newest")
                                                   ((4) "project app" "oldest")
                                                   ((16) "file one.el" "newest")))
            (let ((current-prefix-arg prefix)
                  (this-command 'contexture-add-kill))
              (should (string-search (concat " to " layer)
                                     (contexture-test-message "^Added "
                                       (call-interactively #'contexture-add-kill)))))
            (should (equal text (car (last (contexture-layers-test-contents
                                            (if (equal prefix '(16))
                                                (contexture--layer (contexture--layers) :file)
                                              (contexture-adding-context)))))))))))))

(ert-deftest contexture-layers-that-are-empty-offer-what-there-is ()
  (contexture-layers-test
    (let ((one (contexture-layers-test-project "one" '("a.el" . "(one)\n")))
          (two (contexture-layers-test-project "two" '("a.el" . "(two)\n"))))
      (contexture-layers-test-visiting two "a.el"
        ;; There is nothing to offer.
        (should (equal (contexture--manager-to-show nil) (contexture-current-context))))
      (contexture-layers-test-visiting one "a.el"
        (contexture-layers-test-mark))
      (contexture-layers-test-visiting two "a.el"
        (cl-letf (((symbol-function 'completing-read)
                   (lambda (_ names &rest _)
                     (should (equal (mapcar #'substring-no-properties names)
                                    '("project one")))
                     "project one")))
          (save-window-excursion
            (call-interactively #'contexture-preview)
            (with-current-buffer contexture-preview-buffer
              (should (string-match-p "(one)" (buffer-string))))))))))

;;;; The list, the mode line and the marks

(ert-deftest contexture-layers-are-sections-of-the-list ()
  (contexture-layers-test
    (let ((root (contexture-layers-test-project "app" '("one.el" . "(one)\n(more)\n"))))
      (contexture-layers-test-visiting root "one.el"
        (contexture-layers-test-mark 1 7)
        (let ((contexture-add-to 'buffer))
          (contexture-layers-test-mark 7))
        (save-window-excursion
          (call-interactively #'contexture-list)
          (with-current-buffer contexture-list-buffer
            (llm-ert-wait-for contexture-list--items)
            (should (string-match-p
                     "^  Project app (1 item.*\n.*\n  File one.el (1 item.*\n"
                     (buffer-substring-no-properties (point-min) (point-max))))
            ;; Nothing moves past the borders of a layer, except to another.
            (goto-char (contexture-list--find "ctx-1"))
            (contexture-test-user-error "last item of its layer\\|last item"
              (contexture-list-move-down))
            (contexture-test-message "Moved 1 item to file one.el"
              (contexture-list-to-special))
            (llm-ert-wait-for (= 1 (length (delete-dups
                                                   (mapcar (lambda (it) (plist-get it :manager))
                                                           contexture-list--items)))))
            (goto-char (contexture-list--find "ctx-1"))
            (contexture-test-user-error "already in the most specific section"
              (contexture-list-to-special))
            (contexture-test-message "Undid a transfer"
              (contexture-undo))
            (llm-ert-wait-for (equal (contexture--label
                                             (contexture-list--manager-of "ctx-1"))
                                            "project app"))
            ;; Items of several layers are removed together.
            (contexture-list--tag '("ctx-1" "ctx-2") ?D)
            (contexture-test-message "Removed 2 items" (contexture-list-execute))
            (llm-ert-wait-for (null contexture-list--items))))
        (should-not (contexture-layers-test-contents))))))

(ert-deftest contexture-layers-are-counted-and-marked-in-buffers ()
  (contexture-layers-test
    (let ((root (contexture-layers-test-project
                 "app" '("one.el" . "(one)\n") '("two.el" . "(two)\n"))))
      (contexture-layers-test-visiting root "one.el"
        (contexture-mode)
        (should (equal (contexture--lighter) " ctx"))
        (contexture-layers-test-mark)
        (let ((contexture-add-to 'buffer))
          (contexture-test-message "^Added " (contexture-add-file (concat root "two.el"))))
        (should (string-match-p "^ ctx:2/[0-9]+$" (contexture--lighter)))
        (llm-ert-wait-for (contexture-marks--overlays))
        (should (string-match-p "in context project app (ctx-1"
                                (contexture-marks--eldoc)))
        (contexture-layers-test-visiting root "two.el"
          (contexture-mode)
          (cl-letf (((symbol-function 'project-current)
                     (lambda (&rest _) (ert-fail "asked"))))
            (contexture--lighter))
          (llm-ert-wait-for (contexture--known-context))
          (contexture-test-settle)
          ;; It is in the layer of another file only.
          (should-not (contexture-marks--overlays)))))))

(ert-deftest contexture-layers-a-title-names-what-the-text-has ()
  (contexture-layers-test
    (let ((root (contexture-layers-test-project
                 "app" '("one.el" . "(one)\n") '("two.el" . "(two)\n")))
          (kill-ring nil)
          (kill-ring-yank-pointer nil)
          (preview (lambda ()
                     (save-window-excursion (call-interactively #'contexture-preview))
                     (with-current-buffer contexture-preview-buffer
                       (string-trim (substring-no-properties header-line-format))))))
      (contexture-layers-test-visiting root "one.el"
        (contexture-layers-test-mark)
        (should (string-prefix-p "Project app, " (funcall preview)))
        (let ((contexture-add-to 'shared))
          (contexture-test-message "^Added " (contexture-add-file (concat root "two.el"))))
        (contexture-test-message "^Copied the context of project app and the shared items ("
          (call-interactively #'contexture-copy))
        (should (string-search "(one)" (car kill-ring)))
        (should (string-search "(two)" (car kill-ring)))
        (should (string-prefix-p "Project app and the shared items, " (funcall preview)))
        (let ((contexture-add-to 'buffer))
          (contexture-test-message "^Added " (contexture-add-file (concat root "two.el"))))
        (should (string-prefix-p "Project app, file one.el and the shared items, "
                                 (funcall preview)))))))

(ert-deftest contexture-layers-follow-a-project-that-gets-a-remote ()
  (contexture-layers-test
    (let ((root (contexture-layers-test-project "app" '("one.el" . "(one)\n"))))
      (contexture-layers-test-visiting root "one.el"
        (contexture-layers-test-mark)
        (let ((before (contexture-adding-context)))
          (with-temp-file (concat root ".git/config")
            (insert "[remote \"origin\"]\n\turl = git@example.org:o/app.git\n"))
          (contexture-test-visiting (contexture-test-file "app/two.el" "(two)")
            (should (equal (contexture-layers-test-contents) '("(one)\n"))))
          ;; The first buffer asks again.
          (should-not (equal before (contexture-adding-context)))
          (should (equal (contexture-layers-test-contents) '("(one)\n"))))))))

(ert-deftest contexture-layers-no-variable-is-defined-twice ()
  "The file that is loaded last would change what the other one means."
  (let (seen)
    (dolist (file (directory-files contexture--directory t "\\`[^.].*\\.el\\'"))
      (with-temp-buffer
        (insert-file-contents file)
        (while (re-search-forward
                "^(def\\(?:var\\|const\\|custom\\|var-local\\) \\([^ )\n]+\\)[ \n]" nil t)
          (push (match-string 1) seen))))
    (should (> (length seen) 400))
    (should-not (cl-loop for (name next) on (sort seen #'string<)
                         when (equal name next) collect name))))

(provide 'contexture-layers-tests)
;;; contexture-layers-tests.el ends here
